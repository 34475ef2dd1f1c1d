# frozen_string_literal: true

require_relative "../../clock"
require_relative "low_water_mark"

module AceMQ
  module AMQP
    module Patterns
      # Knows times before which a table, and each of its destinations, has nothing to be claimed, so that claims need not
      # look there. Beside an open snapshot, of a report or a backup, PostgreSQL keeps in its indexes whatever was
      # published since, and every claim would step over all of it.
      #
      # It is asked for when a search was slow, before the next one, and soon forgotten: the next search goes over everything,
      # and finds what was dated earlier than it was written by more than {MARGIN}.
      #
      # @api private
      class LowWater
        # Seconds from which on a search is slow.
        SLOW = 0.02

        # Seconds that the clocks of those who write may differ from the database's, and that may lie between the
        # dating of a record and its writing. What was published in so short a time is always stepped over.
        MARGIN = 10

        # For how many times as long as it took to ask for it an answer is kept.
        KEPT = 40

        # How many times as long as it took to ask pass before it is asked for again, while searches are slow all the same.
        AGAIN = 20

        # Seconds, of both, at most: a lock that the question waited for says nothing about searches.
        LONGEST = 60

        # Destinations that are remembered, the last ones seen, for the time when they have nothing. With more of them a search
        # that names each takes longer than one that looks everywhere, unless very much is dead.
        KNOWN = 300

        # What a database says of a table.
        #
        # @!attribute heads [Array<Array(String, String, Time)>] exchange, routing key and, where there is a row that can be
        #   claimed now or later, the oldest one's time, of all that have one or were asked for; in the order of the index
        # @!attribute at [Time] a time before this was asked
        # @!attribute unfinished [Integer] every transaction of a lower number is over, and this answer knows what it did
        # @!attribute unbegun [Integer] no transaction of a higher number had begun to write
        Reading = Struct.new(:heads, :at, :unfinished, :unbegun, keyword_init: true)

        def initialize
          @lock = Mutex.new
          @asking = Mutex.new
          @earlier = @mark = nil
          @slow = false
          @until = @again = 0
          @forgotten = 0
          @names = {}
        end

        # @param sql [OutboxSQL]
        # @yieldparam sql [OutboxSQL] the same, or one that does not look before the mark
        # @return [Object] what the search in the block found
        def around(sql)
          ask(sql) if @slow && Clock.now >= @again
          started = Clock.now
          mark = current(sql.view)
          yield(sql.since(mark)).tap { @slow = Clock.now - started >= SLOW || mark&.outdated? }
        end

        # @param names [Array<Array(String, String)>] destinations that had something to be claimed just now
        def saw(names)
          @lock.synchronize do
            names.each { |name| @names[name] = @names.delete(name) || true }
            @names.shift while @names.size > KNOWN
            @mark&.saw(names)
          end
        end

        # For whoever has just written what may become claimable and is dated long ago.
        def forget
          @lock.synchronize do
            @earlier = @mark = nil
            @until = @again = 0
            @forgotten += 1
          end
        end

        private

        def current(view)
          mark = @mark
          mark if mark && mark.view == view && Clock.now < @until
        end

        # Before a search and not behind it, where leases would be running. One thread asks for all.
        def ask(sql)
          return unless @asking.try_lock

          begin
            started = Clock.now
            forgotten = @forgotten
            reading = sql.db.low_water(sql, @lock.synchronize { @names.keys })
            seconds = Clock.now - started
            @lock.synchronize { learn(reading, seconds, sql.view) if forgotten == @forgotten }
          ensure
            @asking.unlock
          end
        end

        # Whatever is written from now on was begun after the earlier reading, if all that had begun by then is over:
        # it is dated no earlier than that, or counted among the rows of this reading.
        def learn(reading, seconds, view)
          first = @earlier.nil?
          @again = Clock.now + (reading && first ? 0 : [AGAIN * seconds, LONGEST].min)
          return unless reading

          known = over?(reading)
          keep(LowWaterMark.new(reading.heads, @earlier.at - MARGIN, view), seconds) if known
          @earlier = reading if first || known || reading.unbegun < @earlier.unbegun
        end

        def keep(mark, seconds)
          @mark = mark
          @until = Clock.now + [KEPT * seconds, LONGEST].min
        end

        def over?(reading)
          @earlier && reading.unfinished >= @earlier.unbegun
        end
      end
    end
  end
end
