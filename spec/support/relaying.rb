# frozen_string_literal: true

require "uri"

module AceMQ
  module SpecSupport
    # An outbox in a database, relays on it, a queue behind them.
    module Relaying
      def outbox
        @outbox ||= AMQP::Patterns::ActiveRecordOutboxStore.new(max_payload: nil)
      end

      # Closed after the example.
      def new_relay(connection, store = outbox, **options)
        options[:on_error] ||= ->(error) { reported << error }
        AMQP::Patterns::OutboxRelay.new(connection, store, **options).tap { |relay| relays << relay }
      end

      # Closed after the example.
      def new_proxy
        Proxy.new(URI(broker.url).port).tap { |proxy| cleanups << -> { proxy.close } }
      end

      # What the broker says is kept back for the time of the block.
      def holding_answers(proxy)
        proxy.stall(:down)
        yield
      ensure
        proxy.resume
      end

      def reported
        @reported ||= Thread::Queue.new
      end

      def relays
        @relays ||= []
      end

      def put(id, to:, exchange: "", payload: {}, **options)
        record = AMQP::Patterns.record(recorder, payload, to: to, exchange: exchange, id: id, **options)
        outbox.add(record)
      end

      # Records need a codec and an origin, no broker.
      def recorder
        @recorder ||= AMQP::Connection.lazy("amqp://127.0.0.1:1", origin: "spec@here")
      end

      def sweep_quietly(relay)
        relay.sweep
      rescue AMQP::TransportError
        0
      end

      # @return [Array<String>] ids of the rows that are marked
      def marked
        rows.select { |row| row["published_at"] }.map { |row| row["id"] }
      end

      # @return [Hash{String => Integer}] rows with attempts, by id
      def charged
        rows.to_h { |row| [row["id"], row["attempts"].to_i] }.select { |_, attempts| attempts.positive? }
      end

      # @return [Array<String>] ids of the rows that a relay holds
      def leased
        rows.select { |row| row["locked_by"] }.map { |row| row["id"] }
      end

      # @return [Array<String>] message ids, in order
      def ids_in(connection, queue)
        drain(connection, queue).map(&:message_id)
      end
    end
  end
end

RSpec.configure do |config|
  config.include AceMQ::SpecSupport::Relaying
  config.prepend_after { relays.each { |relay| relay.close(timeout: 5) } }
end
