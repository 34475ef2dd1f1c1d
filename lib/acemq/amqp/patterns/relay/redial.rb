# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # How long to leave an unreachable broker alone: soon at first, then about once a second, and not in step
        # with every other relay that lost the same broker.
        class Redial
          FIRST = 0.1 # seconds
          LONGEST = 1.0 # seconds
          SPREAD = (0.9..1.1)

          def initialize(random: Random.new)
            @random = random
            reset
          end

          # @return [Float] seconds until the next dial
          def pause
            pause = @next * @random.rand(SPREAD)
            @next = [@next * 2, LONGEST].min
            pause
          end

          def reset
            @next = FIRST
          end
        end
      end
    end
  end
end
