# frozen_string_literal: true

module AceMQ
  module Rails
    # The consumer classes of the application, by name, so that a class that was loaded again takes the place of the
    # one it was.
    module Registry
      @classes = []
      @mutex = Mutex.new

      class << self
        # @param consumer_class [Class]
        # @return [Class]
        # @api private
        def register(consumer_class)
          @mutex.synchronize do
            @classes.reject! { |known| known.name && known.name == consumer_class.name }
            @classes << consumer_class
          end
          consumer_class
        end

        # @return [Array<Class>] those that have a queue, in the order they were loaded
        def consumers
          present.select(&:runnable?)
        end

        # @param queues [Array<String>]
        # @return [Array<Class>]
        # @raise [AceMQ::AMQP::ConfigurationError] for a queue that no class handles, with those that are handled
        def for_queues(queues)
          handled = consumers.map(&:queue).uniq
          unknown = queues - handled
          return consumers.select { |consumer| queues.include?(consumer.queue) } if unknown.empty?

          raise AMQP::ConfigurationError, "no consumer handles #{unknown.join(", ")}; there are consumers of " \
                                          "#{handled.empty? ? "no queue at all" : handled.sort.join(", ")}"
        end

        # @return [nil]
        # @api private
        def clear
          @mutex.synchronize { @classes.clear }
          nil
        end

        private

        # A class got its name after it was registered (`Payments = Class.new(Consumer)`), or lost it in a reload.
        def present
          @mutex.synchronize { @classes.dup }.select { |known| known.name.nil? || current?(known) }
        end

        def current?(known)
          Object.const_get(known.name).equal?(known)
        rescue NameError
          # A name such as "#<Class:0x1>::Payments" leads nowhere, and never did.
          known.name.start_with?("#")
        end
      end
    end
  end
end
