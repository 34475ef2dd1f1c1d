# frozen_string_literal: true

require "acemq/testing"

module AceMQ
  module SpecSupport
    # Consumers on a transport without a broker.
    module Consuming
      # A fake that refuses copies to some queues until told otherwise, and notes when what was published.
      class RefusingTransport < AceMQ::Testing::FakeTransport
        # @return [Hash{String => Exception}] by queue
        def refusals
          @refusals ||= {}
        end

        # @return [Integer] copies that were refused
        def refused
          @refused ||= 0
        end

        def publish(routing_key:, **message)
          refusal = refusals[routing_key]
          if refusal
            @refused = refused + 1
            raise refusal
          end

          super
        end
      end

      # What a native delivery is copied from.
      class FakeSource
        attr_accessor :gone

        def alive? = !gone
      end

      def fake_source
        FakeSource.new
      end

      def fake_connection(**options)
        AceMQ::AMQP::Connection.new(transport: transport, **options)
      end

      def fake(payload = {}, **options)
        AceMQ::Testing::FakeDelivery.new(payload, **options)
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::Consuming, :consuming }
