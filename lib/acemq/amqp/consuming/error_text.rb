# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # Reasons as a header can carry them: whatever was given, a readable text comes out.
      #
      # @api private
      module ErrorText
        # Headers share one frame (131,072 bytes by default) with the message's own: what would not fit could not be
        # set aside at all.
        MAX_BYTES = 4_096
        CUT = "..."
        NONE = "no reason given"

        class << self
          # @param cause [String] what was decided
          # @param reason [String, Exception, nil] why
          # @return [String] valid UTF-8 of at most {MAX_BYTES}, cut between characters
          def of(cause, reason)
            cut("#{cause}: #{readable(reason)}")
          end

          # @param text [String] valid UTF-8
          # @param limit [Integer] bytes
          # @return [String]
          def cut(text, limit = MAX_BYTES)
            return text if text.bytesize <= limit

            text.byteslice(0, limit - CUT.bytesize).scrub("") + CUT
          end

          # @param reason [String, Exception, nil]
          # @return [String] valid UTF-8
          def readable(reason)
            case reason
            when nil then NONE
            when Exception then "#{reason.class}: #{message_of(reason)}"
            else utf8(reason.to_s)
            end
          end

          # An exception's message is a method of the application, which may fail as any other.
          def message_of(error)
            utf8(String.new(error.message.to_s))
          rescue StandardError
            "(its message cannot be read)"
          end

          private

          def utf8(text)
            Text.utf8(text) || text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub("?")
          rescue EncodingError
            text.dup.force_encoding(Encoding::UTF_8).scrub("?")
          end
        end
      end
    end
  end
end
