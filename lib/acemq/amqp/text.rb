# frozen_string_literal: true

module AceMQ
  module AMQP
    # One answer to "which characters are these bytes" for everything that is
    # written to the wire or to a text column.
    #
    # @api private
    module Text
      # Bytes tagged as binary are taken as UTF-8 when they are valid UTF-8: what
      # comes from sockets and files is often tagged so, and is text all the same.
      #
      # @param string [String]
      # @return [String, nil] a plain UTF-8 String, nil when it cannot be one
      def self.utf8(string)
        return string if string.encoding == Encoding::UTF_8 && string.instance_of?(String) && string.valid_encoding?

        text = tagged(string)
        text if text&.valid_encoding?
      end

      # Without subclasses (an HTML-safe buffer, say), whose methods differ.
      def self.tagged(string)
        plain = string.instance_of?(String) ? string : String.new(string)
        case plain.encoding
        when Encoding::UTF_8 then plain
        when Encoding::BINARY, Encoding::US_ASCII then plain.dup.force_encoding(Encoding::UTF_8)
        else plain.encode(Encoding::UTF_8)
        end
      rescue EncodingError
        nil
      end
      private_class_method :tagged
    end
  end
end
