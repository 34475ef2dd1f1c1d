# frozen_string_literal: true

require_relative "outbox_row"

module AceMQ
  module AMQP
    module Patterns
      # Turns candidates into leased records.
      #
      # @api private
      class Leasing
        # Bodies of one claim that are held in memory together; a single longer one still comes, alone.
        MAX_BYTES = 64 * 1024 * 1024

        BODY = 3
        BODY_BYTES = 4

        # @return [String]
        attr_reader :token

        # @param sql [OutboxSQL]
        # @param token [String]
        # @param seconds [Numeric]
        def initialize(sql, token, seconds)
          @sql = sql
          @token = token
          @seconds = seconds
          @cut = false
          @asked = []
          @any = false
        end

        # @param lists [Array<Array<String>>] see {Candidates}
        # @return [Array<OutboxRecord>] oldest first
        def take(lists)
          rows = lease(lists.flatten)
          kept = unbroken(lists, rows)
          keep(rows, rows.select { |id, *| kept.include?(id) })
        end

        # Where no record waits for another one.
        #
        # @param sql [OutboxSQL] that looks where there may be some
        # @return [Array<OutboxRecord>] oldest first
        def take_oldest(sql, limit)
          @any = true
          rows = oldest_first(db.lease_oldest(sql, limit, @token, @seconds))
          keep(rows, rows)
        end

        # @return [Boolean] whether the database was asked to lease
        def begun?
          @any || !@asked.empty?
        end

        # @param sql [OutboxSQL]
        # @return [Array<String>] ids of what was leased, whether or not the database could say so, and perhaps of others
        def perhaps_leased(sql)
          return @asked unless @any

          sql.db.rows("SELECT id FROM #{sql.table.quoted} WHERE #{sql.live} AND #{sql.owned_by(token)}", "AceMQ release").flatten
        end

        # @return [Boolean] whether the bodies were too large to take all that was leased
        def cut?
          @cut
        end

        private

        def db
          @sql.db
        end

        def keep(leased, wanted)
          near = within_reach(wanted)
          @cut = near.size < wanted.size
          records = near.filter_map { |row| record(row) }
          release(leased.map(&:first) - records.map(&:id))
          records
        end

        def lease(ids)
          rows = ids.sort.each_slice(Dialects::Base::SLICE).flat_map do |slice|
            @asked.concat(slice)
            db.lease(@sql, slice, @token, @seconds)
          end
          ids.size > Dialects::Base::SLICE ? oldest_first(rows) : rows
        end

        def oldest_first(rows)
          rows.sort_by { |row| [db.read_time(row[8], @sql.created_at), row[0]] }
        rescue ArgumentError
          rows # one of the times is unreadable, which its own record will say
        end

        # What another relay took in between ends the run of its list: whatever comes after it must wait for it.
        def unbroken(lists, rows)
          leased = rows.to_set(&:first)
          lists.flat_map { |list| list.take_while { |id| leased.include?(id) } }.to_set
        end

        # Cut at the first that has no room, because everything after it is younger.
        def within_reach(rows)
          bytes = 0
          rows.each_with_index.take_while { |row, index| (bytes += row[BODY_BYTES].to_i) <= MAX_BYTES || index.zero? }
              .map(&:first)
        end

        # @return [OutboxRecord, nil] nil when the lease is lost already
        def record(row)
          row[BODY] = long_body(row[0]) || return if row[BODY].nil?
          OutboxRow.read(@sql, row)
        end

        def long_body(id)
          db.rows("SELECT body FROM #{db.by_key(@sql.table)} WHERE id IN (#{db.quote(id)}) AND #{@sql.owned_by(@token)}",
                  "AceMQ read").dig(0, 0)
        end

        def release(ids)
          db.sliced(ids) do |slice|
            db.change("UPDATE #{db.by_key(@sql.table)} SET #{@sql.released} " \
                      "WHERE id IN (#{db.list(slice)}) AND #{@sql.owned_by(@token)}", "AceMQ release")
          end
        end
      end
    end
  end
end
