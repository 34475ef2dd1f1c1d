# frozen_string_literal: true

module AceMQ
  module AMQP
    # Seconds that only go forward; the wall clock may be set.
    #
    # @api private
    module Clock
      # @return [Float]
      def self.now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
