# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # A delivery and who it is. Settled once at most: a second answer for the same delivery would close its channel.
      #
      # @api private
      class Original
        # One for all: it is held for a moment, and a lock of its own for each delivery costs more.
        LOCK = Mutex.new
        private_constant :LOCK

        # @return [Delivery]
        attr_reader :delivery
        # @return [Envelope]
        attr_reader :envelope

        # @param delivery [Delivery]
        # @param envelope [Envelope]
        # @param done [Thread::Queue, nil] told when nothing more is to be awaited
        def initialize(delivery, envelope, done: nil)
          @delivery = delivery
          @envelope = envelope
          @done = done
          @settled = @decided = false
        end

        # Called when the handler has answered.
        def decided!
          @decided = true
        end

        # @return [Boolean]
        def decided?
          @decided
        end

        # @return [Boolean] whether an answer would still reach the broker; once not, the broker hands it out again
        def alive?
          !@settled && delivery.alive?
        end

        def ack
          once { delivery.ack }
        end

        # Back to its queue.
        def give_back
          once { delivery.nack(requeue: true) }
        end

        # Nothing more is to be awaited on it: a copy of it is tried again later, or it goes back with its channel.
        def leave
          @done&.push(true)
        end

        private

        def once
          first = LOCK.synchronize { !@settled && (@settled = true) }
          yield if first
          first
        ensure
          leave
        end
      end
    end
  end
end
