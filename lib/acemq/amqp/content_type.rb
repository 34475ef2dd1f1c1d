# frozen_string_literal: true

module AceMQ
  module AMQP
    # Reading of a content type: "text/plain; charset=utf-8".
    #
    # @api private
    module ContentType
      # @return [String] the media type in lower case, "" when none is stated
      def self.media_type(content_type)
        content_type.to_s.split(";", 2).first.to_s.strip.downcase
      end

      # @return [String, nil]
      def self.charset(content_type)
        content_type.to_s[/;\s*charset\s*=\s*"?([^\s;"]+)/i, 1]
      end
    end
  end
end
