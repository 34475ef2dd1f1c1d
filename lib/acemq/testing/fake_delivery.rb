# frozen_string_literal: true

require_relative "../amqp/delivery"
require_relative "../amqp/json_codec"

module AceMQ
  module Testing
    # A delivery that no broker has made, and what was answered to it.
    #
    # @example
    #   fake = AceMQ::Testing::FakeDelivery.new({ "order_id" => 1 }, queue: "orders", attempt: 3)
    #   consumer.handle(fake.delivery)
    #   expect(fake).to be_acked
    class FakeDelivery
      # @return [AceMQ::AMQP::Delivery]
      attr_reader :delivery
      # @return [Array<Symbol>] `:ack`, `:requeue` or `:drop`, in order; a broker takes one at most
      attr_reader :answers

      # @param payload [Object] what the codec encodes; a String is taken as the bytes
      # @param queue [String] also the routing key
      # @param codec [Object] of the payload
      # @param headers [Hash] as on the wire
      # @param options [Hash] members of {AceMQ::AMQP::Delivery}, instead of what is made up for them; the rest are
      #   keywords of {AceMQ::AMQP::Envelope}, whose headers are added
      def initialize(payload = {}, queue: "", codec: AMQP::JSONCodec.new, headers: {}, **options)
        members, fields = options.partition { |name, _| AMQP::Delivery.members.include?(name) }.map(&:to_h)
        @answers = []
        @delivery = AMQP::Delivery.new(
          body: payload.is_a?(String) ? payload : codec.encode(payload), content_type: codec.content_type,
          routing_key: queue, headers: envelope(fields, queue).merge(headers), redelivered: false,
          on_ack: -> { answer(:ack) }, on_nack: ->(requeue) { answer(requeue ? :requeue : :drop) }, **members
        )
      end

      # @return [Boolean]
      def acked?
        answers.include?(:ack)
      end

      # @return [Boolean] whether it was given back to its queue
      def requeued?
        answers.include?(:requeue)
      end

      # @return [Boolean] whether it was refused for good
      def dropped?
        answers.include?(:drop)
      end

      # @return [Boolean]
      def settled?
        answers.any?
      end

      private

      def envelope(fields, queue)
        fields.empty? ? {} : AMQP::Envelope.new(**fields).to_headers(queue)
      end

      # As the native one: whether the broker can have been told.
      def answer(what)
        @answers << what
        true
      end
    end
  end
end
