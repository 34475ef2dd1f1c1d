# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # Outbox records in the order in which they are made.
    module Records
      EPOCH = Time.utc(2026, 1, 1)

      def record(id, to: "order.placed", exchange: "shop", **fields)
        @records_made = (@records_made || 0) + 1
        AMQP::Patterns::OutboxRecord.new(
          id: id, exchange: exchange, routing_key: to, body: "{}", content_type: "application/json",
          headers: { "x-acemq-id" => id }, created_at: EPOCH + @records_made, **fields
        )
      end

      # @param destinations [Hash{String => String}] id to routing key
      def add_records(store, destinations)
        destinations.each { |id, to| store.add(record(id, to: to)) }
      end

      def returned(routing_key = "order.placed")
        AMQP::PublishError.new("no queue is bound for #{routing_key}", unroutable: true, scope: :destination,
                                                                       exchange: "shop", routing_key: routing_key)
      end

      def nacked
        AMQP::PublishError.new("the queue declined it", nacked: true, scope: :destination)
      end

      def refused
        AMQP::PublishError.new("the routing key is 300 bytes long", permanent: true)
      end

      # What the native transport says of a message that it has not written.
      def unsent(why = "an earlier record of its destination was not taken")
        AMQP::PublishingPausedError.new("not sent: #{why}")
      end

      def lost
        AMQP::TransportError.new("the connection was reset")
      end
    end
  end
end
