# frozen_string_literal: true

require "set"
require_relative "outbox_table"
require_relative "outbox_sql"
require_relative "outbox_row"
require_relative "destination_walk"
require_relative "candidates"
require_relative "leasing"
require_relative "settling"
require_relative "outbox_claim"
require_relative "lease_token"
require_relative "overview"
require_relative "purging"
require_relative "settings"
require_relative "table_store"
require_relative "../payload_limit"
require_relative "../../notifications"

module AceMQ
  module AMQP
    module Patterns
      # What an outbox does with its table, whichever way the table is reached; {ActiveRecordOutboxStore} and
      # {SQLOutboxStore} are that way.
      module TableOutbox
        include TableStore
        include Overview

        DEFAULT_MAX_ATTEMPTS = 10

        # Records of one claim at most, and what `pending` gives when it is not told how many.
        MAX_BATCH = 10_000
        DEFAULT_BATCH = 1_000

        ORDERINGS = %i[destination strict none].freeze

        # @return [Numeric] seconds that a relay holds what it has claimed, unless it renews
        attr_reader :lease
        # @return [Integer] failures of its own after which a record is retired
        attr_reader :max_attempts
        # @return [Integer, nil] bytes of a body at most
        attr_reader :max_payload

        # @return [Boolean] whether claims have the index that they walk along; without it they work, more slowly
        def indexed?
          on_database { |sql| !sql.destination_index.nil? }
        end

        # Leases records for one batch.
        #
        # @param limit [Integer] records at most; fewer come when their bodies are large
        # @param ordering [Symbol] `:destination`: the records of one exchange and routing key come in order, and
        #   wait behind one of theirs that is held; `:strict`: the first held record of the table stops everything
        #   behind it; `:none`: the oldest free ones
        # @param ignore_backoff [Boolean] whether records that wait after a failure are taken all the same
        # @return [OutboxClaim]
        # @raise [ArgumentError]
        def claim(limit, ordering: :destination, ignore_backoff: false)
          check_claim!(limit, ordering)
          token = LeaseToken.generate
          limit = [limit, MAX_BATCH].min
          leasing = claim = nil
          claim = on_database(ignore_backoff: ignore_backoff) do |sql|
            leasing = Leasing.new(sql, token, lease)
            records, full = take(ordering, sql, limit, leasing)
            OutboxClaim.new(records, token: token, lease: lease, max_attempts: max_attempts, full: full,
                                     database: method(:on_database))
          end
        ensure
          give_back(leasing) unless leasing.nil? || claim
        end

        # {#claim} for a relay that knows nothing of claims.
        #
        # @param limit [Integer] 1,000 when not positive
        # @return [Array<OutboxRecord>] leased, oldest first
        def pending(limit = 0)
          claim(limit.to_i.positive? ? limit.to_i : DEFAULT_BATCH).records
        end

        # @param ids [String, Array<String>]
        # @return [Integer] rows that were not marked before
        def mark_published(ids)
          ids = Array(ids).map(&:to_s)
          return 0 if ids.empty?

          on_database { |sql| Settling.new(sql, nil).mark_whoever_holds_them(ids) }
        end

        # Counts an attempt, keeps the reason, and gives the record back.
        #
        # @param id [String]
        # @param reason [String, Exception, nil] any bytes and any length
        # @return [nil]
        def mark_failed(id, reason)
          on_database do |sql|
            sql.db.change("UPDATE #{sql.db.by_key(sql.table)} SET attempts = attempts + 1, " \
                          "last_error = #{sql.db.quote(sql.last_error(reason))}, #{sql.released} " \
                          "WHERE id IN (#{sql.db.quote(id.to_s)})", "AceMQ settle")
          end
          nil
        end

        # Brings retired records back, to be tried at once, unless a relay of another process looks no further back just now.
        #
        # @param ids [String, Array<String>, nil] all retired ones that the other arguments leave when nil
        # @param exchange [String, nil] only those of this exchange
        # @param routing_key [String, nil] only those of this routing key
        # @param error [String, nil] only those whose reason has this text in it
        # @return [Integer] records brought back
        def retry!(ids = nil, exchange: nil, routing_key: nil, error: nil)
          ids = Array(ids).map(&:to_s) unless ids.nil?
          on_database do |sql|
            found = retired_ids(sql, ids, { exchange: exchange, routing_key: routing_key, error: error })
            sql.db.sliced(found) do |slice|
              sql.db.change("UPDATE #{sql.db.by_key(sql.table)} SET attempts = 0, #{sql.released} " \
                            "WHERE id IN (#{sql.db.list(slice)}) AND #{sql.db.unpublished} " \
                            "AND attempts >= #{max_attempts}", "AceMQ retry")
            end
          ensure
            sql.table.low_water.forget
          end
        end

        # Removes rows that were published long ago, in statements of `batch` rows each.
        #
        # @param older_than [Numeric, ActiveSupport::Duration] seconds
        # @param batch [Integer]
        # @param pause [Numeric] seconds between two statements, for whoever waits for the disk
        # @yieldparam removed [Integer] rows removed so far, after each statement
        # @return [Integer] rows removed
        def purge_published(older_than, batch: 500, pause: 0, &progress)
          Purging.new(batch, pause).run(progress) { on_database { |sql| purge(sql, older_than.to_f, batch) } }
        end

        # @return [String]
        def inspect
          "#<#{self.class.name} table=#{table} lease=#{lease}s max_attempts=#{max_attempts}>"
        end

        private

        def set_up(database, lease:, max_attempts:, max_payload:)
          @database = database
          @lease = Settings.seconds!(lease, "lease")
          @max_attempts = Settings.count!(max_attempts, "max_attempts")
          @max_payload = PayloadLimit.valid!(max_payload)
          @candidates = Candidates.new(DestinationWalk.new)
        end

        # @yield lends the connection of the work
        def write(record)
          PayloadLimit.check!(record, max_payload)
          Notifications.around(:add, **described(record)) do
            yield ->(db, table) { db.insert(table, "id", OutboxRow.new(db, table, record).values) }
          end
          nil
        end

        def on_database(ignore_backoff: false)
          @database.write { |db, table| yield OutboxSQL.new(db, table, max_attempts, ignore_backoff: ignore_backoff) }
        end

        def check_claim!(limit, ordering)
          unless limit.is_a?(Integer) && limit.positive?
            raise ArgumentError, "a claim's limit must be an Integer above 0, not #{limit.inspect}"
          end
          return if ORDERINGS.include?(ordering)

          raise ArgumentError, "ordering: must be one of #{ORDERINGS.inspect}, not #{ordering.inspect}"
        end

        # @return [Array(Array<OutboxRecord>, Boolean)] and whether there may be more
        def take(ordering, sql, limit, leasing)
          if ordering == :none
            records = sql.table.low_water.around(sql) { |near| leasing.take_oldest(near, limit) }
            return [records, records.size == limit || leasing.cut?]
          end

          lists = sql.table.low_water.around(sql) { |near| @candidates.find(ordering, near, limit) }
          found = lists.sum(&:size)
          return [[], false] if found.zero?

          [leasing.take(lists), found == limit || leasing.cut?]
        end

        # What was leased when the answer got lost, or the thread was interrupted, is in nobody's hands, and whatever comes
        # after it would wait for the lease to end. Fenced by a token that nobody else knows.
        def give_back(leasing)
          return unless leasing.begun?

          on_database { |sql| Settling.new(sql, leasing.token).release(leasing.perhaps_leased(sql)) }
        rescue StandardError
          nil # the lease's end will
        end

        # @return [Array<String>] the statement that uses them looks again whether they are retired
        def retired_ids(sql, ids, wanted)
          wanted = wanted.compact
          return ids if ids && wanted.empty?

          found = sql.db.rows("SELECT id, exchange_name, routing_key, last_error FROM #{sql.table.quoted} WHERE #{sql.retired}",
                              "AceMQ retry")
          found.select { |row| (ids.nil? || ids.include?(row.first)) && meets?(row, **wanted) }.map(&:first)
        end

        def meets?(row, exchange: row[1], routing_key: row[2], error: "")
          row[1] == exchange && row[2] == routing_key && row[3].to_s.include?(error)
        end

        def described(record)
          { id: record.id, exchange: record.exchange, routing_key: record.routing_key,
            bytes: record.body.to_s.bytesize, outbox: label }
        end

        def purge(sql, seconds, batch)
          condition = sql.db.long_past(sql.published_at, seconds)
          sql.db.purge(sql.table, condition, key: "id", order: "published_at", batch: batch)
        end
      end
    end
  end
end
