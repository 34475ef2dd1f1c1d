# frozen_string_literal: true

require_relative "clock"

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
            @sweeps_waiting = 0
          end

          # The background thread's turn.
          def take(&round)
            hold(-> { @holder || @sweeps_waiting.positive? }, -> {}, &round)
          end

          # An explicit sweep's turn.
          #
          # @param still_sensible [#call] called now and then; raises when waiting has become pointless
          def take_for_sweep(still_sensible, &round)
            raise ThreadError, "sweep was called from within a sweep of the same relay" if mine?

            @lock.synchronize { @sweeps_waiting += 1 }
            hold(-> { @holder }, still_sensible, done_waiting: -> { @sweeps_waiting -= 1 }, &round)
          end

          # @return [Boolean] whether it is anybody's turn
          def busy?
            !@holder.nil?
          end

          # @return [Boolean] whether the calling thread is inside its turn
          def mine?
            @holder == Thread.current
          end

          # @param deadline [Float] on {Clock}
          # @return [Boolean] whether nobody's turn was on at the deadline
          def wait_until_free(deadline)
            @lock.synchronize do
              while @holder && (left = deadline - Clock.now).positive?
                @free.wait(@lock, left)
              end
              @holder.nil?
            end
          end

          private

          def hold(busy, still_sensible, done_waiting: -> {})
            @lock.synchronize do
              wait_while(busy, still_sensible)
              @holder = Thread.current
            ensure
              done_waiting.call
            end
            yield
          ensure
            release
          end

          def wait_while(busy, still_sensible)
            while busy.call
              @free.wait(@lock, LOOK)
              still_sensible.call
            end
          end

          def release
            @lock.synchronize do
              @holder = nil if mine?
              @free.broadcast
            end
          end
        end
      end
    end
  end
end
