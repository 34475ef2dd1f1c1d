# frozen_string_literal: true

require "json"
require_relative "content_type"
require_relative "errors"
require_relative "json_value"

module AceMQ
  module AMQP
    # JSON bodies, the default. What a payload becomes is said in {JSONValue}, and
    # does not depend on what else is loaded.
    class JSONCodec
      CONTENT_TYPE = "application/json"

      # A parser quotes the rest of the body; a log line needs only its beginning.
      MAX_DETAIL = 160
      private_constant :MAX_DETAIL

      # @param symbolize_names [Boolean] whether decoded keys are Symbols
      def initialize(symbolize_names: false)
        @symbolize_names = symbolize_names
      end

      # @return [String]
      def content_type
        CONTENT_TYPE
      end

      # @param payload [Object]
      # @return [String] UTF-8
      # @raise [EncodeError] naming the place in the payload
      def encode(payload)
        JSON.generate(JSONValue.of(payload))
      rescue JSON::JSONError => e
        raise EncodeError, "cannot encode the payload as JSON: #{e.message[0, MAX_DETAIL]}"
      end

      # @param body [String]
      # @return [Object]
      # @raise [DecodeError]
      def decode(body)
        text = body.to_s.dup.force_encoding(Encoding::UTF_8)
        raise DecodeError, "the body is not JSON: it is not valid UTF-8" unless text.valid_encoding?

        JSON.parse(text, symbolize_names: @symbolize_names)
      rescue JSON::JSONError => e
        raise DecodeError, "the body is not JSON: #{e.message.scrub[0, MAX_DETAIL]}"
      end

      # @param content_type [String, nil] none at all is read as JSON
      # @return [Boolean]
      def can_decode?(content_type)
        type = ContentType.media_type(content_type)
        type.empty? || type == CONTENT_TYPE || type == "text/json" || type.end_with?("+json")
      end
    end
  end
end
