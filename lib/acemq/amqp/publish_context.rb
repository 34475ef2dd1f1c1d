# frozen_string_literal: true

module AceMQ
  module AMQP
    # What an interceptor sees of a publish, and may change before it is sent.
    #
    # @!attribute exchange [String]
    # @!attribute routing_key [String]
    # @!attribute envelope [Envelope] complete, as it would be sent
    # @!attribute payload [Object] not encoded yet
    # @!attribute reply_to [String, nil]
    # @!attribute mandatory [Boolean]
    PublishContext = Struct.new(:exchange, :routing_key, :envelope, :payload, :reply_to, :mandatory, keyword_init: true) do
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
