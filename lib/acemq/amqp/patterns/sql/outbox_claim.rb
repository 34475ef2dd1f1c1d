# frozen_string_literal: true

require_relative "../failpoint"
require_relative "settling"

module AceMQ
  module AMQP
    module Patterns
      # What {OutboxClaim#settle} did.
      #
      # @!attribute marked  [Integer] rows marked published
      # @!attribute retired [Array<String>] ids of records that will not be tried again
      # @!attribute lost    [Integer] rows whose lease somebody else had by then
      Settlement = Struct.new(:marked, :retired, :lost, keyword_init: true)

      # Records leased for one batch. Whatever is not settled is free again when the lease ends.
      class OutboxClaim
        # @return [Array<OutboxRecord>] oldest first; may be empty
        attr_reader :records
        # @return [String] what `locked_by` says
        attr_reader :token
        # @return [Numeric] seconds that a lease or a renewal lasts
        attr_reader :lease

        # @api private
        # @param database [#call] lends an {OutboxSQL} to a block
        def initialize(records, token:, lease:, max_attempts:, full:, database:)
          @records = records
          @token = token
          @lease = lease
          @max_attempts = max_attempts
          @full = full
          @database = database
          @attempts = records.to_h { |record| [record.id, record.attempts] }
          @unsettled = @attempts.keys
        end

        # @return [Boolean] whether there were more candidates than this claim took: the next one is worth asking
        #   for at once
        def full?
          @full
        end

        # @return [Boolean]
        def empty?
          records.empty?
        end

        # Prolongs the lease of what is not settled yet.
        #
        # @return [Integer] rows that are still held
        def renew
          return 0 if @unsettled.empty?

          on_database { |settling| settling.renew(@unsettled, lease) }
        end

        # Writes down what became of the records. Confirmed ones first: should the rest fail, no message is sent
        # again that the broker has.
        #
        # @param confirmed [Array<String>] ids; marked published whoever holds the lease by now
        # @param failed [Array<Array(String, Object, Boolean)>] id, reason, and whether trying again cannot help:
        #   the record's own failure, one attempt more and a pause; retired at the ceiling, or at once
        # @param held [Array<Array(String, Object)>] id and reason: the destination's failure; it waits, and is
        #   never retired for it
        # @param unsent [Array<String>] ids given back uncharged
        # @return [Settlement]
        # @raise [ActiveRecord::ActiveRecordError] when the database fails; what was settled until then is
        def settle(confirmed: [], failed: [], held: [], unsent: [])
          settled = Settlement.new(marked: 0, retired: [], lost: 0)
          return settled if [confirmed, failed, held, unsent].all?(&:empty?)

          on_database do |settling|
            mark(settling, confirmed, settled)
            Failpoint.reach(:mid_mark) unless confirmed.empty?
            charge(settling, failed, settled)
            hold(settling, held, settled)
            release(settling, unsent, settled)
          end
          settled
        end

        # @return [String]
        def inspect
          "#<#{self.class.name} #{records.size} records, token=#{token}, lease=#{lease}s>"
        end

        private

        def on_database
          @database.call { |sql| yield Settling.new(sql, token) }
        end

        def mark(settling, ids, settled)
          settled.marked, lost = settling.mark(ids)
          done(ids, settled, ids.uniq.size - lost)
        end

        def charge(settling, failures, settled)
          last, rest = failures.partition { |id, _, permanent| permanent || last_attempt?(id) }
          last.each { |id, reason,| retire(settling, id, reason, settled) }
          alike(rest).each { |(reason, attempts), ids| done(ids, settled, settling.charge(ids, reason, attempts)) }
        end

        def retire(settling, id, reason, settled)
          changed = settling.retire(id, reason)
          settled.retired << id if changed == 1
          done([id], settled, changed)
        end

        def hold(settling, heads, settled)
          alike(heads).each { |(reason, attempts), ids| done(ids, settled, settling.hold(ids, reason, attempts)) }
        end

        def release(settling, ids, settled)
          done(ids, settled, settling.release(ids))
        end

        def last_attempt?(id)
          @attempts.fetch(id, 0) + 1 >= @max_attempts
        end

        # One statement for all that failed for the same reason and are to wait equally long.
        def alike(failures)
          failures.group_by { |id, reason,| [FailureText.of(reason), @attempts.fetch(id, 0)] }
                  .transform_values { |found| found.map(&:first) }
        end

        def done(ids, settled, ours)
          settled.lost += ids.uniq.size - ours
          @unsettled -= ids
        end
      end
    end
  end
end
