# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # The parts of {OutboxRelay}.
      #
      # @api private
      module Relay
        # Seconds that only go forward.
        module Clock
          def self.now
            Process.clock_gettime(Process::CLOCK_MONOTONIC)
          end
        end
      end
    end
  end
end
