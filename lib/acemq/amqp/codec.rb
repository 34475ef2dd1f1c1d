# frozen_string_literal: true

require_relative "errors"
require_relative "short_string"

module AceMQ
  module AMQP
    # What turns payloads into bodies and back: any object with `content_type`,
    # `encode(payload)`, `decode(body)` or `decode(body, content_type)`, and
    # `can_decode?(content_type)`.
    module Codec
      METHODS = %i[content_type encode decode can_decode?].freeze

      class << self
        # @return [Boolean] whether the object answers everything that a codec must
        def codec?(object)
          missing(object).empty?
        end

        # @return [Object] the codec
        # @raise [ArgumentError] naming what it lacks
        def check!(object)
          lacking = missing(object)
          unless lacking.empty?
            raise ArgumentError, "#{object.inspect[0, 80]} is not a codec: it does not answer #{lacking.join(", ")}"
          end

          ShortString.check!(object.content_type, "content_type of #{object.class}")
          object
        end

        # @return [String] the body
        # @raise [EncodeError] also when the codec returned anything but a String
        def encode(codec, payload)
          body = codec.encode(payload)
          return body if body.is_a?(String)

          raise EncodeError, "#{codec.class}#encode returned #{body.class} instead of a String"
        end

        # @return [Object] the payload
        # @raise [DecodeError]
        def decode(codec, body, content_type)
          decoder(codec).call(body, content_type)
        end

        # Codecs differ in whether they want to know the content type. Looking takes as long as decoding a short body.
        #
        # @return [#call] takes a body and its content type, returns the payload or raises {DecodeError}
        def decoder(codec)
          return ->(body, _content_type) { codec.decode(body) } if codec.method(:decode).arity == 1

          ->(body, content_type) { codec.decode(body, content_type) }
        end

        private

        def missing(object)
          METHODS.reject { |name| object.respond_to?(name) }
        end
      end
    end
  end
end
