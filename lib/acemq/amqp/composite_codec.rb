# frozen_string_literal: true

require_relative "codec"
require_relative "content_type"
require_relative "errors"

module AceMQ
  module AMQP
    # Several codecs as one: the first writes, and each reads its own content types.
    class CompositeCodec
      # @param codecs [Array<Object>] at least one
      # @raise [ArgumentError]
      def initialize(*codecs)
        raise ArgumentError, "CompositeCodec needs at least one codec" if codecs.empty?

        @codecs = codecs.map { |codec| Codec.check!(codec) }.freeze
      end

      # @return [String] the first codec's
      def content_type
        @codecs.first.content_type
      end

      # @return [String]
      # @raise [EncodeError]
      def encode(payload)
        Codec.encode(@codecs.first, payload)
      end

      # A body without a content type goes to the first codec that can make sense of it.
      #
      # @param body [String]
      # @param content_type [String, nil]
      # @return [Object]
      # @raise [DecodeError]
      def decode(body, content_type = nil)
        return guess(body) if ContentType.media_type(content_type).empty?

        codec = @codecs.find { |candidate| candidate.can_decode?(content_type) }
        return Codec.decode(codec, body, content_type) if codec

        raise DecodeError, "no codec reads #{content_type.inspect}; there are #{names}"
      end

      # @return [Boolean]
      def can_decode?(content_type)
        ContentType.media_type(content_type).empty? || @codecs.any? { |codec| codec.can_decode?(content_type) }
      end

      private

      def guess(body)
        failures = @codecs.map do |codec|
          return Codec.decode(codec, body, nil)
        rescue DecodeError => e
          e.message
        end
        raise DecodeError, "the body states no content type and none of #{names} reads it: #{failures.join("; ")}"
      end

      def names
        @codecs.map(&:content_type).join(", ")
      end
    end
  end
end
