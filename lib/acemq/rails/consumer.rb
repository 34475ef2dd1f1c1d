# frozen_string_literal: true

require_relative "../amqp"
require_relative "registry"

module AceMQ
  module Rails
    # A class that handles the messages of one queue. One instance serves the whole
    # process, so what it keeps in instance variables has to be safe between threads.
    #
    # @example
    #   class PaymentsConsumer < AceMQ::Rails::Consumer
    #     queue "shop.payments"
    #     retries max_attempts: 5, initial_delay: 1, max_delay: 300
    #
    #     def call(message)
    #       Payments.charge!(message.payload["order_id"])
    #       accept
    #     end
    #   end
    class Consumer
      Ack = AMQP::Ack

      # Keywords of {.retries}.
      RETRY_KEYWORDS = %i[max_attempts initial_delay max_delay multiplier jitter give_up_after
                          broker_wait_threshold].freeze

      # Every setting is read without an argument and written with one. All but the
      # queue and the tag are inherited.
      class << self
        # @param name [String, nil]
        # @return [String, nil] the queue it handles; each class has its own
        def queue(name = nil)
          return @queue if name.nil?

          @queue = AMQP::ShortString.check!(name, "queue of #{self}").dup.freeze
          raise ArgumentError, "queue of #{self} is empty" if @queue.empty?

          @queue
        end

        # @param count [Integer, nil] threads
        # @return [Integer, nil]
        def concurrency(count = nil)
          setting(:concurrency, count) { |value| whole(:concurrency, value, 1) }
        end

        # @param count [Integer, nil] messages handed over ahead; 0 is no limit
        # @return [Integer, nil]
        def prefetch(count = nil)
          setting(:prefetch, count) { |value| whole(:prefetch, value, 0) }
        end

        # @param codec [Object, nil]
        # @return [Object, nil]
        def codec(codec = nil)
          setting(:codec, codec) { |value| AMQP::Codec.check!(value) }
        end

        # @param seconds [Numeric, nil] from which on a retry waits in the broker
        # @return [Numeric, nil]
        def broker_wait_threshold(seconds = nil)
          setting(:broker_wait_threshold, seconds) { |value| not_negative(:broker_wait_threshold, value) }
        end

        # @param arguments [Hash, nil] of the subscription
        # @return [Hash, nil]
        def arguments(arguments = nil)
          setting(:arguments, arguments) { |value| AMQP::Headers.render(value).freeze }
        end

        # How often and how far apart a message is tried. What the keywords leave open is as `config.acemq.consumer`
        # says.
        #
        # @param policy [AceMQ::AMQP::RetryPolicy, nil]
        # @param options [Hash] instead of a policy: `max_attempts:` (in all), `initial_delay:`, `max_delay:`,
        #   `give_up_after:`, `broker_wait_threshold:` (seconds), `multiplier:`, `jitter:` (0.2 is 0.8 to 1.2)
        # @return [AceMQ::AMQP::RetryPolicy, nil]
        # @raise [ArgumentError]
        def retries(policy = nil, **options)
          raise ArgumentError, "retries of #{self}: give a policy or keywords, not both" if policy && options.any?

          refuse_unknown(options.keys - RETRY_KEYWORDS)
          broker_wait_threshold(options[:broker_wait_threshold])
          policy_of(setting(:retries, policy || (options if options.any?)) { |value| retries!(value) })
        end

        # @param value [String, nil]
        # @return [String, nil] what the broker shows for it; the name of the class unless said
        def tag(value = nil)
          return @tag || name if value.nil?

          @tag = AMQP::ShortString.check!(value, "tag of #{self}").dup.freeze
        end

        # @return [Boolean] whether it has a queue to handle
        def runnable?
          !queue.nil?
        end

        # @api private
        def inherited(subclass)
          super
          Registry.register(subclass)
        end

        protected

        # Nearest class first, as Ruby finds methods.
        def inherited_setting(name)
          return @settings[name] if @settings&.key?(name)

          superclass.inherited_setting(name) if superclass <= Consumer
        end

        private

        def setting(name, value)
          return inherited_setting(name) if value.nil?

          (@settings ||= {})[name] = yield(value)
        end

        def retries!(value)
          policy_of(value)
          value
        end

        # Asked for anew each time: the settings may be made after the class was loaded.
        def policy_of(value)
          return value if value.nil? || value.is_a?(AMQP::RetryPolicy)
          raise ArgumentError, "retries of #{self} must be a RetryPolicy, not #{value.inspect}" unless value.is_a?(Hash)

          settings = AceMQ::Rails.config.consumer
          given = { jitter_factor: value[:jitter], max_message_age: value[:give_up_after],
                    **value.except(:broker_wait_threshold, :jitter, :give_up_after) }.compact
          AMQP::RetryPolicy.new(max_attempts: settings.max_attempts, **settings.delays, **given)
        end

        def refuse_unknown(keywords)
          return if keywords.empty?

          raise ArgumentError, "retries of #{self} has no #{keywords.join(", ")}; there are #{RETRY_KEYWORDS.join(", ")}"
        end

        def whole(name, value, least)
          return value if value.is_a?(Integer) && value >= least

          raise ArgumentError, "#{name} of #{self} must be an Integer, #{least} or more, not #{value.inspect}"
        end

        def not_negative(name, value)
          return value if value.is_a?(Numeric) && value.real? && !value.negative?

          raise ArgumentError, "#{name} of #{self} must be seconds, 0 or more, not #{value.inspect}"
        end
      end

      # Handles one message.
      #
      # @param message [AceMQ::AMQP::Message]
      # @return [AceMQ::AMQP::Ack]
      def call(message)
        raise NotImplementedError, "#{self.class} must define call(message) and return accept, retry_later, reject or park"
      end

      private

      # Done.
      def accept
        Ack.accept
      end

      # To be tried again, within the class's retries.
      #
      # @param reason [String, Exception, nil]
      def retry_later(reason = nil)
        Ack.retry(reason)
      end

      # Cannot succeed: to the dead-letter queue.
      #
      # @param reason [String, Exception, nil]
      def reject(reason = nil)
        Ack.reject(reason)
      end

      # Needs a person: to the parked queue.
      #
      # @param reason [String, Exception, nil]
      def park(reason = nil)
        Ack.park(reason)
      end
    end
  end
end
