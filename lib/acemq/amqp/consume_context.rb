# frozen_string_literal: true

module AceMQ
  module AMQP
    # What an interceptor sees of a delivery. What it changes reaches the handler, and nothing else: a copy for a
    # later attempt is made of the message as it was received.
    class ConsumeContext
      # @return [String]
      attr_reader :queue
      # @return [Object, nil] decoded; nil when it could not be
      attr_reader :payload
      # @return [String] the bytes as received
      attr_reader :body
      # @return [String]
      attr_reader :content_type
      # @return [Boolean]
      attr_reader :redelivered
      # @return [Envelope]
      attr_accessor :envelope
      # @return [Settlement, nil] what becomes of the delivery, once that is decided; setting it changes nothing
      attr_accessor :settlement

      # @api private
      def initialize(queue:, payload:, delivery:, envelope:)
        @queue = queue
        @payload = payload
        @body = delivery.body
        @content_type = delivery.content_type
        @redelivered = delivery.redelivered ? true : false
        @envelope = envelope
      end

      # @param name [String, Symbol] not one of the library's own
      # @param value [Object] see {Headers}
      # @return [self]
      # @raise [ArgumentError]
      def set_header(name, value)
        self.envelope = envelope.with(headers: envelope.headers.merge(name.to_s => value))
        self
      end
    end
  end
end
