# frozen_string_literal: true

require "rspec/core"
require "rspec/expectations"
require_relative "../testing"
require_relative "observed"
require_relative "pattern"

module AceMQ
  module Testing
    # Matchers for RSpec, included in all examples by `require "acemq/testing/rspec"`.
    module Matchers
      # Of a block: whether it put such a message into an outbox, and did not roll it back. Of a store: whether such a
      # message waits there.
      #
      # @param name [String, Regexp, nil] routing key or type
      # @example
      #   expect { Order.place! }.to have_outboxed("order.placed").to("shop-events").with(order_id: 7)
      #   expect { Order.place!(broken) }.not_to have_outboxed("order.placed")
      def have_outboxed(name = nil)
        HaveOutboxed.new(name)
      end

      # Of a block: whether it published such a message on {AceMQ::Rails.connection}. Of a {FakeTransport}, or a connection
      # on one: whether it ever did.
      #
      # @param name [String, Regexp, nil] routing key or type
      # @example
      #   expect(transport).to have_published("order.placed").to("shop-events").with(order_id: 7).once
      def have_published(name = nil)
        HavePublished.new(name)
      end

      # What both have in common.
      class HaveMessages
        include ::RSpec::Matchers::Composable

        def initialize(name)
          @pattern = Pattern.new(name)
          @counts = (1..)
        end

        # @param exchange [String, Regexp, #===]
        def to(exchange)
          chained { @pattern.exchange = exchange }
        end

        # @param payload [Hash, Object] members that it has at least; matchers may stand for values
        def with(payload)
          chained { @pattern.payload = payload }
        end

        # @param headers [Hash]
        def with_headers(headers)
          chained { @pattern.headers = headers }
        end

        def once
          exactly(1)
        end

        def twice
          exactly(2)
        end

        # @param count [Integer]
        def exactly(count)
          chained { @counts = (count..count) }
        end

        # @param count [Integer]
        def at_least(count)
          chained { @counts = (count..) }
        end

        # @param count [Integer]
        def at_most(count)
          chained { @counts = (0..count) }
        end

        # Reads well after a number.
        def times
          self
        end

        def matches?(actual)
          @found = found(actual)
          @count = @found.count { |message| @pattern.match?(message) }
          @counts.cover?(@count)
        end

        def supports_block_expectations?
          true
        end

        def description
          "#{verb} #{@pattern}#{wanted}"
        end

        def failure_message
          "expected to #{description}, but #{@count.zero? ? "found none" : "found #{@count}"} #{listed}"
        end

        def failure_message_when_negated
          "expected not to #{description}, but found #{@count} #{listed}"
        end

        private

        def chained
          yield
          self
        end

        def wanted
          return "" if @counts == (1..)
          return ", #{@counts.begin} times" if @counts.begin == @counts.end

          @counts.end ? ", at most #{@counts.end} times" : ", at least #{@counts.begin} times"
        end

        def listed
          return "among no messages" if @found.empty?

          "among\n#{@found.map { |message| "  #{Pattern.describe(message)}" }.join("\n")}"
        end
      end

      # See {Matchers#have_outboxed}.
      class HaveOutboxed < HaveMessages
        # @param store [#add] the one to look into, where it is not one of the library's
        def in(store)
          chained { @store = store }
        end

        private

        def verb
          "have outboxed"
        end

        def found(actual)
          actual.respond_to?(:call) ? Observed.outboxed(@store, &actual) : Observed.in_outbox(actual)
        end
      end

      # See {Matchers#have_published}.
      class HavePublished < HaveMessages
        # @param where [AMQP::Connection, #published] instead of {AceMQ::Rails.connection}
        def on(where)
          chained { @where = where }
        end

        private

        def verb
          "have published"
        end

        def found(actual)
          actual.is_a?(Proc) ? Observed.published(@where, &actual) : Observed.published(actual)
        end
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::Testing::Matchers }
