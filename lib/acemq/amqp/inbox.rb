# frozen_string_literal: true

require_relative "short_string"

module AceMQ
  module AMQP
    # Takes messages off queues, one at a time, by a channel of its own; see {Connection#inbox}.
    class Inbox
      # @api private
      # @param source [#pull] answers a queue's name with what the block makes a delivery of, or nil
      # @yieldreturn [Delivery]
      def initialize(source, &delivery)
        @source = source
        @delivery = delivery
      end

      # @param queue [String]
      # @return [Delivery, nil] not settled yet; nil when the queue is empty
      # @raise [TransportError]
      # @raise [ArgumentError] after the end of the block that it was made for
      def pull(queue)
        raise ArgumentError, "this inbox is closed: it is there for its block only" if @closed

        letter = @source.pull(ShortString.check!(queue, "queue"))
        letter && @delivery.call(letter)
      end

      # @return [nil]
      # @api private
      def close
        @closed = true
        nil
      end
    end
  end
end
