# frozen_string_literal: true

module AceMQ
  module Testing
    # What {FakeTransport#subscribe} answers. Messages come by {FakeTransport#deliver}.
    class FakeSubscription
      # @return [String]
      attr_reader :queue
      # @return [Hash{Symbol => Object}] the keywords of subscribe
      attr_reader :options

      def initialize(queue, options, &receiver)
        @queue = queue
        @options = options
        @receiver = receiver
        @open = true
      end

      # @return [self] as the family's record of a subscription has it
      def subscription
        self
      end

      # @return [Boolean]
      def open?
        @open
      end

      # Hands a delivery over, on this thread.
      #
      # @param delivery [AceMQ::AMQP::Delivery]
      def receive(delivery)
        @receiver.call(delivery)
      end

      # @return [nil]
      def stop
        @open = false
        nil
      end

      # @return [nil]
      def close(**)
        stop
      end

      # @return [nil]
      def cancel
        stop
      end
    end
  end
end
