# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # A delivery and who it is. Settled once at most: a second answer for the same delivery would close its channel.
      #
      # @api private
      class Original
        # @return [Delivery]
        attr_reader :delivery
        # @return [Envelope]
        attr_reader :envelope

        def initialize(delivery, envelope)
          @delivery = delivery
          @envelope = envelope
          @settled = @decided = @done = false
          @mutex = Mutex.new
          @left = ConditionVariable.new
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
          @mutex.synchronize do
            @done = true
            @left.broadcast
          end
        end

        # Returns when nothing more is to be awaited.
        def wait
          @mutex.synchronize { @left.wait(@mutex) until @done }
        end

        private

        def once
          first = @mutex.synchronize { !@settled && (@settled = true) }
          yield if first
          first
        ensure
          leave
        end
      end
    end
  end
end
