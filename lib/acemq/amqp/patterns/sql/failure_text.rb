# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # A reason as a column can keep it. Recording a failure must not fail: whatever bytes, length or kind of
      # object the reason is, a readable text comes out.
      #
      # @api private
      module FailureText
        UNKNOWN = "(no reason given)"
        LIMIT = 1_000 # characters: the family's column

        # @param reason [String, Exception, Object, nil]
        # @param limit [Integer] characters
        # @return [String] valid UTF-8 without NUL
        def self.of(reason, limit = LIMIT)
          text = readable(reason)
          text = UNKNOWN if text.empty?
          text.length > limit ? "#{text[0, limit - 3]}..." : text
        end

        def self.readable(reason)
          text = reason.is_a?(Exception) ? "#{reason.class}: #{reason.message}" : reason.to_s
          utf8(String.new(text)).scrub("?").delete("\0").strip
        rescue StandardError
          "#{reason.class} (its message cannot be read)"
        end
        private_class_method :readable

        # Bytes that claim another encoding are converted where that is possible, and taken as they are where not.
        def self.utf8(text)
          return text if text.encoding == Encoding::UTF_8
          return text.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY

          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace, replace: "?")
        end
        private_class_method :utf8
      end
    end
  end
end
