# frozen_string_literal: true

require_relative "exchange_kind"
require_relative "headers"
require_relative "queue_type"
require_relative "short_string"

module AceMQ
  module AMQP
    # Exchanges, queues and bindings of a {Connection}.
    module Declarations
      # Makes sure that an exchange exists. One that exists differently is refused by the broker.
      #
      # @param name [String]
      # @param kind [String, Symbol] direct, fanout, topic, headers, or a plugin's "x-..."
      # @param durable [Boolean] whether it outlives a restart of the broker
      # @param auto_delete [Boolean] whether it goes with its last binding
      # @param arguments [Hash]
      # @return [nil]
      # @raise [ArgumentError]
      # @raise [TransportError]
      def declare_exchange(name, kind:, durable: true, auto_delete: false, arguments: {})
        ask(:declare_exchange, named(name, "exchange"), kind: ExchangeKind.check!(kind, name), durable: durable,
                                                        auto_delete: auto_delete, arguments: Headers.render(arguments))
        nil
      end

      # Makes sure that a queue exists: a quorum queue unless something else is said,
      # or unless its other properties rule that out.
      #
      # @param name [String] "" has the broker choose a name (with `exclusive: true`)
      # @param queue_type [Symbol, nil] `:quorum`, `:classic` or `:stream`
      # @param durable [Boolean] whether it outlives a restart of the broker
      # @param auto_delete [Boolean] whether it goes with its last consumer
      # @param exclusive [Boolean] whether it belongs to this connection and goes with it
      # @param arguments [Hash]
      # @return [String] its name
      # @raise [QueueTypeError]
      # @raise [ArgumentError]
      # @raise [TransportError]
      def declare_queue(name, queue_type: nil, durable: true, auto_delete: false, exclusive: false, arguments: {})
        name = ShortString.check!(name, "queue")
        flags = { durable: durable, auto_delete: auto_delete, exclusive: exclusive }
        type, arguments = QueueType.resolve(name: name, requested: queue_type, arguments: arguments, **flags)
        ask(:declare_queue, name, queue_type: type, arguments: arguments, **flags)
      end

      # @param queue [String]
      # @param exchange [String]
      # @param routing_key [String]
      # @return [nil]
      # @raise [TransportError]
      def bind(queue:, exchange:, routing_key: "")
        ask(:bind, queue: named(queue, "queue"), exchange: named(exchange, "exchange"),
                   routing_key: ShortString.check!(routing_key, "routing_key"))
        nil
      end

      # @param queue [String]
      # @return [Integer] messages that are ready, without those handed out
      # @raise [TransportError]
      def message_count(queue)
        ask(:message_count, named(queue, "queue"))
      end

      # @param name [String]
      # @return [Boolean]
      # @raise [TransportError]
      def queue_exists?(name)
        ask(:queue_exists?, named(name, "queue"))
      end

      # @param name [String]
      # @return [nil]
      # @raise [TransportError]
      def delete_queue(name)
        ask(:delete_queue, named(name, "queue"))
        nil
      end

      private

      def named(name, what)
        text = ShortString.check!(name, what)
        raise ArgumentError, "the name of the #{what} is empty" if text.empty?

        text
      end
    end
  end
end
