# frozen_string_literal: true

module AceMQ
  module AMQP
    # What AMQP calls a short string: exchange and queue names, routing keys,
    # message ids, content types, header names. Its length travels in one byte.
    module ShortString
      # The protocol's limit, in bytes rather than characters.
      MAX_BYTES = 255

      # @param value [String, Symbol, nil] nil is the empty string
      # @param field [String] what the value is, for the error
      # @return [String] the value in UTF-8
      # @raise [ArgumentError] when it is no text or longer than 255 bytes
      def self.check!(value, field)
        text = utf8(value, field)
        return text if text.bytesize <= MAX_BYTES

        raise ArgumentError, "#{field} is #{text.bytesize} bytes long and AMQP carries at most #{MAX_BYTES}: " \
                             "#{text.byteslice(0, 40).scrub("").inspect}..."
      end

      # @api private
      def self.utf8(value, field)
        case value
        when nil then ""
        when Symbol then utf8(value.name, field)
        when String then Text.utf8(value) || raise(ArgumentError, "#{field} is not valid #{value.encoding} text")
        else raise ArgumentError, "#{field} must be a String, not #{value.class}"
        end
      end
      private_class_method :utf8
    end
  end
end
