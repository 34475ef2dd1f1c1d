# frozen_string_literal: true

require_relative "../clock"
require_relative "../deadline"
require_relative "../log"

module AceMQ
  module AMQP
    module Consuming
      # Where copies wait for their time, so that no worker has to. One thread, started with the first of them.
      #
      # @api private
      class WaitingRoom
        Entry = Struct.new(:due, :copy)

        # @param name [String] of the thread
        # @param changed [#call] told when somebody has come or gone
        # @yieldparam copy [Copy] whose time has come; called on the room's thread, one at a time
        def initialize(name, changed = -> {}, &leaving)
          @name = name
          @tell = changed
          @leaving = leaving
          @entries = [] # by due, so that insertion is a binary search
          @busy = false
          @hurried = false
          @closed = false
          @mutex = Mutex.new
          @changed = ConditionVariable.new
        end

        # @param copy [Copy]
        # @param delay [Numeric] seconds
        # @return [Boolean] false when the room is closed and the copy was not taken
        def add(copy, delay)
          @mutex.synchronize do
            return false if @closed

            insert(Entry.new(Clock.now + delay, copy))
            start unless @thread&.alive?
            @changed.broadcast
          end
          @tell.call
          true
        end

        # @return [Integer] copies that wait
        def size
          @mutex.synchronize { @entries.size }
        end

        # From now on nobody waits.
        def hurry
          @mutex.synchronize do
            @hurried = true
            @changed.broadcast
          end
        end

        # @param deadline [Deadline]
        # @return [Boolean] whether everybody has left by then
        def wait_until_empty(deadline)
          @mutex.synchronize do
            while (@entries.any? || @busy) && !@closed
              return false if deadline.passed?

              @changed.wait(@mutex, deadline.left)
            end
          end
          true
        end

        # Ends the thread; who is still there is not let out any more.
        #
        # @return [Array<Copy>] those
        def close
          @mutex.synchronize do
            @closed = true
            @changed.broadcast
            @entries.map(&:copy).tap { @entries.clear }
          end
        end

        private

        def insert(entry)
          place = @entries.bsearch_index { |other| other.due > entry.due } || @entries.size
          @entries.insert(place, entry)
        end

        def start
          @thread = Thread.new { run }
          @thread.name = @name
        end

        def run
          while (copy = next_copy)
            let_out(copy)
          end
        end

        def next_copy
          @mutex.synchronize do
            until @closed
              first = @entries.first
              left = first && (@hurried ? 0 : Deadline.new(first.due).left)
              return take if left&.zero?

              @changed.wait(@mutex, left)
            end
          end
        end

        def take
          @busy = true
          @entries.shift.copy
        end

        # The thread must outlive whatever happens here: deliveries that wait for it would be held for ever.
        def let_out(copy)
          @leaving.call(copy)
        rescue StandardError => e
          Log.error("a message on its way to #{copy.target} is left to the broker: #{e.class}: #{e.message}")
        ensure
          @mutex.synchronize do
            @busy = false
            @changed.broadcast
          end
          @tell.call
        end
      end
    end
  end
end
