# frozen_string_literal: true

require_relative "../testing"
require_relative "observed"
require_relative "pattern"

module AceMQ
  module Testing
    # For Minitest: `include AceMQ::Testing::Assertions` in the test class.
    #
    # @example
    #   assert_outboxed("order.placed", to: "shop-events", with: { order_id: 7 }) { Order.place! }
    module Assertions
      # Whether the block put such a message into an outbox, and did not roll it back.
      #
      # @param name [String, Regexp, nil] routing key or type
      # @param to [String, Regexp, nil] exchange
      # @param with [Hash, nil] members of the payload
      # @param headers [Hash, nil]
      # @param times [Integer, nil] exactly so often; at least once when nil
      # @param store [#add, nil] the one to look into, where it is not one of the library's
      # @return [Array<AMQP::Patterns::OutboxRecord>] those that match
      def assert_outboxed(name = nil, to: nil, with: nil, headers: nil, times: nil, store: nil, &block)
        assert_messages("put into an outbox", Observed.outboxed(store, &block), pattern(name, to, with, headers), times)
      end

      # @see #assert_outboxed
      def refute_outboxed(name = nil, to: nil, with: nil, headers: nil, store: nil, &block)
        assert_messages("put into an outbox", Observed.outboxed(store, &block), pattern(name, to, with, headers), 0)
      end

      # Whether the block published such a message; whether it was ever published where there is no block.
      #
      # @param on [AMQP::Connection, FakeTransport, nil] {AceMQ::Rails.connection} when nil
      # @return [Array<FakeTransport::Published>] those that match
      # @see #assert_outboxed
      def assert_published(name = nil, to: nil, with: nil, headers: nil, times: nil, on: nil, &block)
        assert_messages("published", Observed.published(on, &block), pattern(name, to, with, headers), times)
      end

      # @see #assert_published
      def refute_published(name = nil, to: nil, with: nil, headers: nil, on: nil, &block)
        assert_messages("published", Observed.published(on, &block), pattern(name, to, with, headers), 0)
      end

      private

      def pattern(name, exchange, payload, headers)
        Pattern.new(name).tap do |pattern|
          pattern.exchange = exchange
          pattern.payload = payload
          pattern.headers = headers
        end
      end

      def assert_messages(verb, found, pattern, times)
        matching = found.select { |message| pattern.match?(message) }
        list = found.map { |message| "  #{Pattern.describe(message)}" }.join("\n")
        wanted = times.nil? ? "at least once" : "#{times} times"
        assert(times.nil? ? matching.any? : matching.size == times,
               "expected #{pattern} to be #{verb} #{wanted}, not #{matching.size} times, among:\n#{list}")
        matching
      end
    end
  end
end
