# frozen_string_literal: true

require_relative "content_type"
require_relative "errors"
require_relative "text"

module AceMQ
  module AMQP
    # Plain text, written as UTF-8.
    class StringCodec
      CONTENT_TYPE = "text/plain; charset=utf-8"

      # @return [String]
      def content_type
        CONTENT_TYPE
      end

      # @param payload [String, Symbol]
      # @return [String] UTF-8
      # @raise [EncodeError]
      def encode(payload)
        unless payload.is_a?(String) || payload.is_a?(Symbol)
          raise EncodeError, "StringCodec writes Strings, not #{payload.class}"
        end

        Text.utf8(payload.to_s) || raise(EncodeError, "the payload is not valid #{payload.encoding} text")
      end

      # @param body [String]
      # @param content_type [String, nil] its charset is honoured
      # @return [String] UTF-8
      # @raise [DecodeError]
      def decode(body, content_type = nil)
        encoding = Encoding.find(ContentType.charset(content_type) || "utf-8")
        text = body.to_s.dup.force_encoding(encoding)
        raise DecodeError, "the body is not valid #{encoding} text" unless text.valid_encoding?

        text.encode(Encoding::UTF_8)
      rescue EncodingError, ArgumentError => e
        raise DecodeError, "the body cannot be read as text: #{e.message}"
      end

      # @return [Boolean] whether it is text
      def can_decode?(content_type)
        ContentType.media_type(content_type).start_with?("text/")
      end
    end
  end
end
