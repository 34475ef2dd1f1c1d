# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Any bytes in a text column, readable where they are text.
      #
      # @api private
      module StoredBody
        TEXT = "utf-8"
        BASE64 = "base64"

        class << self
          # @param bytes [String] of any encoding; its bytes are the message
          # @yieldparam text [String] valid UTF-8
          # @yieldreturn [Boolean] whether the column can hold it
          # @return [Array(String, String)] the column's text, and what to call it in `body_encoding`
          def encode(bytes)
            text = bytes.dup.force_encoding(Encoding::UTF_8)
            # NUL is valid UTF-8 that PostgreSQL and SQLite refuse.
            return [text, TEXT] if text.valid_encoding? && !text.include?("\0") && yield(text)

            [[bytes].pack("m0").force_encoding(Encoding::UTF_8), BASE64]
          end

          # @return [String] the bytes given to {.encode}
          # @raise [ArgumentError] when the column does not hold what `encoding` says
          def decode(text, encoding)
            case encoding
            when TEXT then text.to_s
            when BASE64 then unpack(text)
            else raise ArgumentError, "body_encoding #{encoding.inspect} is neither #{TEXT.inspect} nor #{BASE64.inspect}"
            end
          end

          private

          def unpack(text)
            text.to_s.unpack1("m0")
          rescue ArgumentError
            raise ArgumentError, "the body is not the base64 that body_encoding says it is"
          end
        end
      end
    end
  end
end
