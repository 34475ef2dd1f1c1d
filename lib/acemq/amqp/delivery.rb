# frozen_string_literal: true

module AceMQ
  module AMQP
    # One message as the broker handed it out, not yet settled.
    #
    # @!attribute body [String] bytes
    # @!attribute content_type [String] "" when the producer named none
    # @!attribute routing_key [String]
    # @!attribute exchange [String, nil] that it was published to
    # @!attribute message_id [String, nil] the AMQP property
    # @!attribute headers [Hash{String => Object}]
    # @!attribute redelivered [Boolean]
    # @!attribute reply_to [String, nil]
    # @!attribute on_ack [#call, nil] called without arguments
    # @!attribute on_nack [#call, nil] called with true when the message is to go back to its queue
    # @!attribute source [#alive?, nil] what a native transport copies it from
    Delivery = Struct.new(:body, :content_type, :routing_key, :message_id, :headers, :redelivered, :reply_to,
                          :on_ack, :on_nack, :exchange, :source, keyword_init: true) do
      # Tells the broker that it is done with. The word is written soon after; the broker does not answer it.
      #
      # @return [Object] of a native transport false when its channel is gone, or when it was settled before
      def ack
        on_ack&.call
      end

      # Gives it back, or has the broker drop or dead-letter it.
      #
      # @param requeue [Boolean]
      # @return [Object] as {#ack}
      def nack(requeue: false)
        on_nack&.call(requeue)
      end

      # @return [Boolean] whether settling it still means something; false when its channel is gone, and the broker
      #   hands the message out again
      def alive?
        source.nil? || source.alive?
      end
    end
  end
end
