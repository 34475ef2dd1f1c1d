# frozen_string_literal: true

require_relative "../../clock"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # The relay's thread: a round, a pause, a round, until it is stopped.
        class Worker
          NAME = "acemq-relay"

          # Seconds to sit out, and whether a wake-up may cut them short.
          Pause = Struct.new(:seconds, :wakeable)

          # @yieldreturn [Pause]
          def initialize(&round)
            @round = round
            @lock = Mutex.new
            @signal = ConditionVariable.new
            @stopping = false
            @woken = false
          end

          # @return [Worker] self
          def start
            @thread = Thread.new { run }
            @thread.name = NAME
            self
          end

          def alive?
            @thread&.alive? ? true : false
          end

          def me?
            @thread == Thread.current
          end

          def wake
            @lock.synchronize do
              @woken = true
              @signal.signal
            end
          end

          # Ends the pause at once, and the loop after the round on its way.
          def stop
            @lock.synchronize do
              @stopping = true
              @signal.signal
            end
          end

          # @param deadline [Float] on {Clock}
          # @return [Boolean] whether the thread has ended
          def join(deadline)
            @thread.join([deadline - Clock.now, 0].max) ? true : false
          end

          private

          def run
            sit_out(@round.call) until @stopping
          end

          def sit_out(pause)
            until_then = Clock.now + pause.seconds
            @lock.synchronize do
              until @stopping || (@woken && pause.wakeable)
                left = until_then - Clock.now
                break unless left.positive?

                @signal.wait(@lock, left)
              end
              @woken = false if pause.wakeable
            end
          end
        end
      end
    end
  end
end
