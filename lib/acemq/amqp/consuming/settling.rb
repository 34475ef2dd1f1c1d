# frozen_string_literal: true

require_relative "../naming"
require_relative "../retry_ladder"
require_relative "../retry_policy"
require_relative "../telemetry"
require_relative "copy"
require_relative "trouble"
require_relative "waiting_room"

module AceMQ
  module AMQP
    module Consuming
      # Carries decisions out. A message that is to be elsewhere is copied there, and acknowledged once the broker has
      # the copy in a queue: it is never nowhere, and for a moment it may be twice.
      #
      # While a copy cannot be placed its original stays unacknowledged and the copy is tried again. Handing it back to
      # the broker instead would have it delivered again at once, and count against the delivery limit of a quorum
      # queue, which drops what has reached it.
      #
      # @api private
      class Settling
        # Between tries of a copy: 1 s, doubling to 30 s, spread by a fifth.
        BACKOFF = RetryPolicy.exponential(2**31, 1.0, 30.0)

        # @param connection [Connection]
        # @param policy [RetryPolicy]
        # @param threshold [Numeric] seconds from which on a retry waits in the broker
        # @param ladder [RetryLadder]
        # @param declared [Declared]
        def initialize(connection, policy:, threshold:, ladder:, declared:)
          @connection = connection
          @policy = policy
          @threshold = threshold
          @ladder = ladder
          @declared = declared
          @queue = ladder.source
          @trouble = Trouble.new(@queue, connection.meter)
          @room = WaitingRoom.new("acemq waiting #{@queue}", -> { show_waiting }) { |copy| leave_room(copy) }
          @draining = @released = false
        end

        # @param original [Original]
        # @param settlement [Settlement]
        def settle(original, settlement)
          return original.leave if @released

          case settlement.outcome
          when Settlement::ACKED then original.ack
          when Settlement::RETRIED then try_later(original, settlement.delay)
          when Settlement::IN_PROGRESS then come_back(original, settlement.delay)
          when Settlement::PARKED then set_aside(original, Naming.parked_queue(@queue), settlement.reason)
          else set_aside(original, Naming.dead_letter_queue(@queue), settlement.reason)
          end
        end

        # @return [Integer] deliveries that are held
        def waiting
          @room.size
        end

        # From now on nothing waits: a deploy is not delayed by a backoff.
        def drain
          @draining = true
          @room.hurry
        end

        # @param deadline [Deadline]
        # @return [Boolean] whether all copies have been dealt with by then
        def wait_until_drained(deadline)
          @room.wait_until_empty(deadline)
        end

        # From now on nothing is settled: what is not goes back with its channel.
        def release
          @released = true
          @room.close.each { |copy| copy.original.leave }
        end

        private

        def show_waiting
          @connection.meter.gauge(Telemetry::WAITING, @room.size, queue: @queue)
        end

        def try_later(original, delay)
          attempt = original.envelope.attempt + 1
          rung = rung_for(delay)
          return place(Copy.new(original, rung.queue, rung: delay, attempt: attempt)) if rung

          hold(Copy.new(original, @queue, attempt: attempt), @policy.jittered(delay))
        end

        def rung_for(delay)
          return unless RetryLadder.waits_in_broker?(delay, @threshold)

          rung = @ladder.rung_for(delay)
          return rung if rung && @declared.usable?(rung)

          @connection.meter.count(Telemetry::RUNG_MISSING, queue: @queue)
          nil
        end

        def come_back(original, delay)
          hold(Copy.new(original, @queue, in_progress: true), delay)
        end

        def set_aside(original, target, reason)
          place(Copy.new(original, target, error: reason))
        end

        def hold(copy, delay)
          @draining || !delay.positive? ? leave_room(copy) : wait(copy, delay)
        end

        def leave_room(copy)
          return copy.original.leave if @released
          return copy.original.give_back if @draining && copy.in_progress

          place(copy)
        end

        def place(copy)
          # What the broker hands out again must not be copied as well.
          return copy.original.leave unless copy.original.alive?

          copy.original.ack if placed?(copy)
        end

        def placed?(copy)
          publish(copy)
          @trouble.over(copy.target)
          true
        rescue StandardError => e
          @trouble.met(copy.target, e)
          not_placed(copy, e)
          false
        end

        def publish(copy)
          copy.publish(@connection.transport)
        rescue PublishError => e
          raise unless mended?(copy, e)

          copy.publish(@connection.transport)
        end

        def mended?(copy, error)
          error.unroutable? ? restored?(copy.target) : error.permanent? && copy.trim
        end

        def restored?(target)
          @connection.meter.count(Telemetry::RUNG_MISSING, queue: @queue) if @ladder.queues.include?(target)
          @declared.restore(target)
        rescue TransportError
          false
        end

        def not_placed(copy, error)
          copy.original.leave
          return if @draining

          # A wait needs no queue, only time.
          no_rung = copy.rung && error.respond_to?(:unroutable?) && error.unroutable?
          no_rung ? wait(copy.redirected(@queue), @policy.jittered(copy.rung)) : wait(copy, BACKOFF.next_delay(copy.tries))
        end

        def wait(copy, delay)
          copy.original.leave unless @room.add(copy, delay)
        end
      end
    end
  end
end
