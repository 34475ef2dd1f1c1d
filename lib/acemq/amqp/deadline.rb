# frozen_string_literal: true

require_relative "clock"

module AceMQ
  module AMQP
    # One point in time that several waits share.
    #
    # @api private
    class Deadline
      # Seconds; a condition variable takes no wait of ages. Who waits longer asks again.
      LONGEST_WAIT = 86_400.0

      # @param seconds [Numeric] from now
      # @return [Deadline]
      # @raise [ArgumentError]
      def self.in(seconds)
        unless seconds.is_a?(Numeric) && seconds.real? && seconds >= 0
          raise ArgumentError, "timeout must be seconds, 0 or more, not #{seconds.inspect}"
        end

        new(Clock.now + seconds)
      end

      def initialize(at)
        @at = at
      end

      # @return [Float] seconds that may be waited now: 0 when it has passed, and never more than {LONGEST_WAIT}
      def left
        (@at - Clock.now).clamp(0.0, LONGEST_WAIT)
      end

      # @return [Boolean]
      def passed?
        left.zero?
      end
    end
  end
end
