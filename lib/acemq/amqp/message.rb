# frozen_string_literal: true

module AceMQ
  module AMQP
    # What a handler is given.
    #
    # @!attribute payload [Object] the decoded body
    # @!attribute envelope [Envelope]
    # @!attribute routing_key [String, nil]
    # @!attribute content_type [String, nil]
    # @!attribute redelivered [Boolean, nil]
    # @!attribute body [String, nil] the bytes as received
    # @!attribute reply_to [String, nil]
    Message = Struct.new(:payload, :envelope, :routing_key, :content_type, :redelivered, :body, :reply_to,
                         keyword_init: true) do
      # @return [Boolean] whether the broker has handed it out before
      def redelivered?
        redelivered ? true : false
      end

      # @return [String] the envelope's id
      def id
        envelope.id
      end

      # @return [Integer] the envelope's attempt, from 1
      def attempt
        envelope.attempt
      end
    end
  end
end
