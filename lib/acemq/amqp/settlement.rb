# frozen_string_literal: true

module AceMQ
  module AMQP
    # What becomes of a delivery, decided after its handler has answered. Frozen.
    class Settlement
      ACKED = "acked"
      RETRIED = "retried"
      REJECTED = "rejected"
      DEAD_LETTERED = "dead_lettered"
      PARKED = "parked"
      IN_PROGRESS = "in_progress"
      # Ours: the handler was cut off (its thread killed, the process told to exit), and the broker hands it out again.
      REQUEUED = "requeued"

      # @return [String] one of the constants
      attr_reader :outcome
      # @return [Float, nil] seconds until it comes back
      attr_reader :delay
      # @return [String, nil] as `x-acemq-error` carries it
      attr_reader :reason

      # @param outcome [String]
      # @param delay [Float, nil] seconds
      # @param reason [String, nil]
      def initialize(outcome, delay: nil, reason: nil)
        @outcome = outcome
        @delay = delay
        @reason = reason
        freeze
      end

      # @return [Boolean]
      def acked?
        outcome == ACKED
      end

      # @return [Boolean]
      def retried?
        outcome == RETRIED
      end

      # @return [Boolean]
      def parked?
        outcome == PARKED
      end

      # @return [Boolean]
      def in_progress?
        outcome == IN_PROGRESS
      end

      # @return [Boolean] whether it goes to the dead-letter queue
      def dead_letters?
        [REJECTED, DEAD_LETTERED].include?(outcome)
      end

      # @return [String]
      def to_s
        detail = reason || (delay && "in #{delay} s")
        detail ? "#{outcome} (#{detail})" : outcome
      end
    end
  end
end
