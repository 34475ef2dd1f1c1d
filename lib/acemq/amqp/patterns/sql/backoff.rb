# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # How long a row waits after a failure.
      #
      # @api private
      module Backoff
        FIRST = 1.0 # seconds
        LONGEST = 30.0

        # Rows that failed together must not all come back at the same moment.
        JITTER = 0.2

        # @param attempts [Integer] failures before this one
        # @param random [#rand]
        # @return [Float] seconds
        def self.seconds(attempts, random: Random)
          [FIRST * (2**attempts.clamp(0, 16)), LONGEST].min * (1 - JITTER * random.rand)
        end
      end
    end
  end
end
