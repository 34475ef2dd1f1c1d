# frozen_string_literal: true

require_relative "lease_token"

module AceMQ
  module AMQP
    module Patterns
      # Rows that one claim of a relay holds.
      #
      # @!attribute holder       [String] host and process; the bare token where another library wrote it
      # @!attribute since        [Time, nil] of the claim, by the clock of the relay
      # @!attribute seconds_left [Float] until the lease ends, unless it is renewed
      # @!attribute rows         [Integer]
      OutboxLease = Struct.new(:holder, :since, :seconds_left, :rows, keyword_init: true)

      # What the table knows of one exchange and routing key.
      #
      # @!attribute exchange    [String]
      # @!attribute routing_key [String]
      # @!attribute pending     [Integer] rows still to be published
      # @!attribute retired     [Integer] rows that will not be tried again
      # @!attribute published   [Integer] rows published and not purged yet
      # @!attribute error       [String, nil] one of the reasons why rows that are still tried were not taken
      OutboxDestination = Struct.new(:exchange, :routing_key, :pending, :retired, :published, :error, keyword_init: true)

      # What an operator asks of an outbox; nothing here leases or changes a row.
      #
      # @api private
      module Overview
        # @return [Integer] records still to be published; retired ones do not count
        def pending_count
          on_database { |sql| count(sql, sql.live) }
        end

        # @return [Integer] records that will not be tried again
        def retired_count
          on_database { |sql| count(sql, sql.retired) }
        end

        # @return [Float, nil] seconds since the oldest record still to be published was written, 0 for one that a
        #   faster clock wrote; nil without one
        def oldest_pending_age
          on_database { |sql| sql.db.oldest_age(sql)&.clamp(0.0..) }
        end

        # @return [Hash{Array(String, String) => Integer}] records that wait after a failure, by exchange and routing key
        def held
          on_database do |sql|
            waiting = sql.db.rows("SELECT exchange_name, routing_key, COUNT(*) FROM #{sql.table.quoted} " \
                                  "WHERE #{sql.live} AND locked_by IS NULL AND #{sql.held} " \
                                  "GROUP BY exchange_name, routing_key", "AceMQ held")
            waiting.to_h { |exchange, routing_key, rows| [[exchange, routing_key], rows.to_i] }
          end
        end

        # @return [Array<OutboxLease>] longest held first
        def leases
          on_database do |sql|
            left = sql.db.seconds_until(sql.locked_until)
            found = sql.db.rows("SELECT locked_by, COUNT(*), MIN(#{left}) FROM #{sql.table.quoted} " \
                                "WHERE #{sql.live} AND locked_by IS NOT NULL AND #{sql.held} GROUP BY locked_by", "AceMQ leases")
            found.map { |token, rows, seconds| lease_of(token, rows, seconds) }.sort_by { |lease| [lease.since.to_f, lease.holder] }
          end
        end

        # @param seconds [Numeric]
        # @return [Integer] records that were published so lately
        def published_within(seconds)
          on_database do |sql|
            count(sql, "published_at IS NOT NULL AND #{sql.db.lately(sql.published_at, seconds.to_f)}")
          end
        end

        # @param seconds [Numeric, ActiveSupport::Duration]
        # @return [Integer] rows that {ActiveRecordOutboxStore#purge_published} would remove
        def purgeable_count(seconds)
          on_database { |sql| count(sql, sql.db.long_past(sql.published_at, seconds.to_f)) }
        end

        # Reads the whole table.
        #
        # @param limit [Integer]
        # @return [Array<OutboxDestination>] those that have failed first, then those with rows still to be published, then
        #   all others; each by exchange and routing key
        def destinations(limit = 1_000)
          on_database do |sql|
            sql.db.rows(<<~SQL, "AceMQ destinations").map { |row| destination_of(row) }
              SELECT exchange_name, routing_key, SUM(CASE WHEN #{sql.live} THEN 1 ELSE 0 END),
                     SUM(CASE WHEN #{sql.retired} THEN 1 ELSE 0 END), SUM(CASE WHEN published_at IS NOT NULL THEN 1 ELSE 0 END),
                     MAX(CASE WHEN #{sql.live} THEN last_error END)
                FROM #{sql.table.quoted} GROUP BY exchange_name, routing_key
               ORDER BY MAX(CASE WHEN #{sql.live} AND last_error IS NOT NULL THEN 2 WHEN #{sql.live} THEN 1 ELSE 0 END) DESC,
                        exchange_name, routing_key
               LIMIT #{Integer(limit)}
            SQL
          end
        end

        # Records still to be published, leased by nobody for it: for specs and for looking.
        #
        # @param limit [Integer]
        # @return [Array<OutboxRecord>] oldest first
        def peek(limit = 100)
          on_database { |sql| read(sql, sql.live, limit) }
        end

        # Records that will not be tried again, oldest first, with `error` saying why.
        #
        # @param limit [Integer]
        # @return [Array<OutboxRecord>]
        def retired(limit = 100)
          on_database { |sql| read(sql, sql.retired, limit) }
        end

        # Asks the database for nothing but an answer.
        #
        # @return [self]
        # @raise [ActiveRecord::ActiveRecordError] when it gives none
        # @raise [ConfigurationError] when the table is not there
        def ping
          on_database { |sql| sql.db.rows("SELECT id FROM #{sql.table.quoted} WHERE 1 = 0", "AceMQ ping") }
          self
        end

        private

        def count(sql, condition)
          sql.db.rows("SELECT COUNT(*) FROM #{sql.table.quoted} WHERE #{condition}", "AceMQ count").dig(0, 0).to_i
        end

        def read(sql, condition, limit)
          sql.db.rows("SELECT #{sql.columns("body")}, last_error FROM #{sql.table.quoted} WHERE #{condition} " \
                      "ORDER BY created_at, id LIMIT #{Integer(limit)}", "AceMQ read").map do |row|
            OutboxRow.read(sql, row).tap { |record| record.error = row.last || record.error }
          end
        end

        def lease_of(token, rows, seconds)
          holder, since = LeaseToken.read(token)
          OutboxLease.new(holder: holder, since: since, seconds_left: seconds.to_f, rows: rows.to_i)
        end

        def destination_of(row)
          exchange, routing_key, pending, retired, published, error = row
          OutboxDestination.new(exchange: exchange, routing_key: routing_key, pending: pending.to_i, retired: retired.to_i,
                                published: published.to_i, error: error)
        end
      end
    end
  end
end
