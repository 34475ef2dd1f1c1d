# frozen_string_literal: true

require_relative "errors"

module AceMQ
  module AMQP
    # Bodies that are bytes already.
    class BytesCodec
      CONTENT_TYPE = "application/octet-stream"

      # @return [String]
      def content_type
        CONTENT_TYPE
      end

      # @param payload [String]
      # @return [String] the same bytes
      # @raise [EncodeError]
      def encode(payload)
        return payload.b if payload.is_a?(String)

        raise EncodeError, "BytesCodec writes Strings, not #{payload.class}"
      end

      # @param body [String]
      # @return [String] binary
      def decode(body)
        body.to_s.b
      end

      # @return [Boolean] true: anything can be read as bytes
      def can_decode?(_content_type)
        true
      end
    end
  end
end
