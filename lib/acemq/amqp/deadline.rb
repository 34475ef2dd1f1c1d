# frozen_string_literal: true

module AceMQ
  module AMQP
    # One point in time that several waits share.
    #
    # @api private
    class Deadline
      # @param seconds [Numeric] from now
      # @return [Deadline]
      # @raise [ArgumentError]
      def self.in(seconds)
        unless seconds.is_a?(Numeric) && seconds.real? && seconds >= 0
          raise ArgumentError, "timeout must be seconds, 0 or more, not #{seconds.inspect}"
        end

        new(now + seconds)
      end

      # Not the wall clock, which may be set.
      def self.now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      def initialize(at)
        @at = at
      end

      # @return [Float] seconds, 0 when it has passed
      def left
        [@at - self.class.now, 0.0].max
      end

      # @return [Boolean]
      def passed?
        left.zero?
      end
    end
  end
end
