# frozen_string_literal: true

require_relative "consuming/work"
require_relative "log"

module AceMQ
  module AMQP
    # What looks at every message on its way: objects with any of the hooks below. One object serves all threads.
    #
    # | hook | called | what it raises |
    # |---|---|---|
    # | `before_publish(context)` | before encoding; may change the {PublishContext} | aborts the publish |
    # | `after_confirm(context)` | after the broker has it | is logged |
    # | `before_handle(context)` | before the handler, with a {ConsumeContext} | counts as the handler's failure |
    # | `after_handle(context, ack)` | after it has answered, before the delivery is settled | is logged |
    # | `on_error(context, error)` | when it was not confirmed, or the handler failed | is logged |
    #
    # Logged on a thread that publishes is what a bare `rescue` takes, and ScriptError and SystemStackError. Anything else,
    # an exit or the failed expectation of a spec for one, is the caller's: `publish` raises it, and the message is sent all
    # the same. On a consumer's thread all but what ends the process is logged.
    #
    # The lower `order` goes first on the way in (`before_`) and last on the way out; of equal order, who was registered
    # first.
    class Interceptors
      PUBLISH_HOOKS = %i[before_publish after_confirm on_error].freeze
      CONSUME_HOOKS = %i[before_handle after_handle on_error].freeze
      HOOKS = (PUBLISH_HOOKS | CONSUME_HOOKS).freeze

      # What is logged on the way out. A publisher's thread is the application's: what interrupts it, or fails its spec,
      # has to reach it.
      LOGGED = { publish: [StandardError, ScriptError, SystemStackError].freeze, consume: [Exception].freeze }.freeze
      private_constant :LOGGED

      Entry = Struct.new(:interceptor, :order)

      def initialize
        @publish = [].freeze
        @consume = [].freeze
        @mutex = Mutex.new
      end

      # @return [Array<Object>] in the order of the way in
      def publish
        @publish.map(&:interceptor)
      end

      # @return [Array<Object>] in the order of the way in
      def consume
        @consume.map(&:interceptor)
      end

      # @api private
      def add_publish(interceptor, order, &block)
        entry = entry(interceptor, order, :before_publish, block)
        @mutex.synchronize { @publish = with(@publish, entry) }
      end

      # @api private
      def add_consume(interceptor, order, &block)
        entry = entry(interceptor, order, :before_handle, block)
        @mutex.synchronize { @consume = with(@consume, entry) }
      end

      # @api private
      def publish?
        !@publish.empty?
      end

      # @api private
      def consume?
        !@consume.empty?
      end

      # On the way in: what a hook raises is the caller's.
      # @api private
      def before(hook, context)
        entries(side_of(hook)).each { |entry| entry.interceptor.public_send(hook, context) if entry.interceptor.respond_to?(hook) }
      end

      # On the way out: what a hook raises is logged.
      # @api private
      def after(hook, context, *facts, side: side_of(hook))
        entries(side).reverse_each do |entry|
          entry.interceptor.public_send(hook, context, *facts) if entry.interceptor.respond_to?(hook)
        rescue *Consuming::Work::FATAL
          raise
        rescue *LOGGED.fetch(side) => e
          Log.error("the interceptor #{entry.interceptor.class}##{hook} failed, which changes nothing: #{e.class}: #{e.message}")
        end
      end

      private

      def side_of(hook)
        PUBLISH_HOOKS.include?(hook) ? :publish : :consume
      end

      def entries(side)
        side == :publish ? @publish : @consume
      end

      # Stable: of equal order, the earlier one stays first.
      def with(entries, entry)
        place = entries.index { |other| other.order > entry.order } || entries.size
        entries.dup.insert(place, entry).freeze
      end

      def entry(interceptor, order, hook, block)
        raise ArgumentError, "give an interceptor or a block, not both" if interceptor && block

        interceptor = block_interceptor(hook, block) if block
        unless HOOKS.any? { |name| interceptor.respond_to?(name) }
          raise ArgumentError, "#{interceptor.class} is no interceptor: it has none of #{HOOKS.join(", ")}"
        end

        Entry.new(interceptor, checked(order || (interceptor.respond_to?(:order) ? interceptor.order : 0)))
      end

      def block_interceptor(hook, block)
        Object.new.tap { |object| object.define_singleton_method(hook) { |context| block.call(context) } }
      end

      def checked(order)
        order.is_a?(Integer) ? order : raise(ArgumentError, "order must be an Integer, not #{order.inspect}")
      end
    end
  end
end
