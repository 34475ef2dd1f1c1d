# frozen_string_literal: true

require_relative "amqp"
require_relative "testing/fake_transport"
require_relative "testing/inline"

module AceMQ
  # For an application's own specs; loaded by `require "acemq/testing"` only. The RSpec matchers are in
  # "acemq/testing/rspec", the assertions for Minitest in "acemq/testing/minitest".
  #
  # @example
  #   AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new)
  module Testing
    class << self
      # From now on, or while the block runs, what is added to an outbox is published as soon as its transaction has
      # committed, on the same thread. What the transport does not take stays in the outbox; see {.errors}.
      #
      # @param connection [AMQP::Connection, #publish, nil] {AceMQ::Rails.connection} when nil
      # @return [Object, nil] the block's
      def inline!(connection = nil)
        before = [Inline.on?, Inline.connection]
        Inline.start(connection)
        return unless block_given?

        begin
          yield
        ensure
          before.first ? Inline.start(before.last) : Inline.stop
        end
      end

      # Records wait in their outbox again, for a relay or a sweep.
      #
      # @return [nil]
      def outbox!
        Inline.stop
      end

      # @return [Boolean]
      def inline?
        Inline.on?
      end

      # @return [Array<Exception>] why something was not published since {.inline!}
      def errors
        Inline.errors
      end
    end
  end
end
