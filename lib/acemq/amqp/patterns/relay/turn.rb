# frozen_string_literal: true

require_relative "../../clock"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Whose turn it is: one batch at a time, and an explicit sweep before the thread's next one.
        class Turn
          LOOK = 0.1 # seconds between two looks at whether waiting still makes sense

          def initialize
            @lock = Mutex.new
            @free = ConditionVariable.new
            @holder = nil
            @sweeps = []
          end

          # The background thread's turn.
          def take(&round)
            hold(-> { busy? || @sweeps.any?(&:alive?) }, -> {}, &round)
          end

          # An explicit sweep's turn.
          #
          # @param still_sensible [#call] called now and then; raises when waiting has become pointless
          def take_for_sweep(still_sensible, &round)
            raise ThreadError, "sweep was called from within a sweep of the same relay" if mine?

            hold(-> { busy? }, still_sensible, announced: true, &round)
          end

          # @return [Boolean] whether it is anybody's turn
          def busy?
            @holder&.alive? ? true : false
          end

          # @return [Boolean] whether the calling thread is inside its turn
          def mine?
            @holder == Thread.current
          end

          # @param deadline [Float] on {Clock}
          # @return [Boolean] whether nobody's turn was on at the deadline
          def wait_until_free(deadline)
            @lock.synchronize do
              while busy? && (left = deadline - Clock.now).positive?
                @free.wait(@lock, [left, LOOK].min)
              end
              !busy?
            end
          end

          private

          # A kill or a Timeout may come while it waits and while the round runs, and nowhere else: what is noted of the
          # turn would stay.
          def hold(busy, still_sensible, announced: false, &round)
            Thread.handle_interrupt(Object => :never) do
              note { @sweeps << Thread.current } if announced
              wait(busy, still_sensible) until note { @holder = Thread.current unless busy.call }
              interruptible(&round)
            ensure
              note { release }
            end
          end

          def wait(busy, still_sensible)
            interruptible do
              @lock.synchronize { @free.wait(@lock, LOOK) if busy.call }
              still_sensible.call
            end
          end

          def interruptible(&block)
            Thread.handle_interrupt(Object => :immediate, &block)
          end

          def note(&steps)
            @lock.synchronize(&steps)
          end

          def release
            @holder = nil if mine?
            @sweeps.delete(Thread.current)
            @free.broadcast
          end
        end
      end
    end
  end
end
