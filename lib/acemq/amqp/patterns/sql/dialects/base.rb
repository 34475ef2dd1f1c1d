# frozen_string_literal: true

require_relative "../nominal_time"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # What the databases have in common.
        #
        # Values go in as quoted literals: string SQL with binds means something else on each adapter, and
        # literals prepare nothing, which suits poolers. Reads go through `exec_query`, which no query cache answers.
        #
        # @api private
        class Base
          # As many ids as MariaDB looks up one by one; for longer lists it may scan, and lock, the whole table.
          SLICE = 500

          attr_reader :connection

          def initialize(connection)
            @connection = connection
          end

          # @return [Array<Array>]
          def rows(sql, name)
            connection.exec_query(sql, name).rows
          end

          # @return [Integer] rows changed
          def change(sql, name)
            connection.update(sql, name)
          end

          # Writes a row unless its key is there already, without harm to a surrounding transaction.
          #
          # @param values [Hash{String => String}] column to SQL
          # @return [Boolean] whether it was written
          def insert(table, key, values)
            change("#{insert_into(table, values)} ON CONFLICT (#{key}) DO NOTHING", "AceMQ add") == 1
          end

          # Looks first and takes over then: a duplicate, the common case, costs no write.
          #
          # @return [Symbol] {Claim} value, or {IdempotencySQL::TAKEN_OVER}
          def claim(sql, key, owner)
            return Claim::CLAIMED if insert_claim(sql, key, owner)

            sql.answer(*rows(sql.look(key), "AceMQ claim").first) { take_over(sql, key, owner) }
          end

          # @return [Boolean]
          def take_over(sql, key, owner)
            change("UPDATE #{by_key(sql.table)} SET #{sql.takeover(owner)} WHERE #{sql.key_is(key)} AND #{sql.stale}",
                   "AceMQ claim") == 1
          end

          def insert_into(table, values)
            "INSERT INTO #{table.quoted} (#{values.keys.join(", ")}) VALUES (#{values.values.join(", ")})"
          end

          def quote(value)
            connection.quote(value)
          end

          def list(values)
            values.map { |value| quote(value) }.join(", ")
          end

          # Sorted, so that two of these statements lock their rows in the same order.
          #
          # @yieldparam ids [Array<String>]
          # @return [Integer] sum of what the block returns
          def sliced(ids, &block)
            ids.uniq.sort.each_slice(SLICE).sum(&block)
          end

          # What has to come before the first look at a table.
          def before_reading(_table); end

          # A reconnection is the caller's to make while a transaction is open: what the transaction did is lost.
          # A session that lives and is read-only stays so, even when the server has long been writable again.
          #
          # @param error [Exception] what the last statement raised
          def mend(error)
            return if connection.transaction_open?

            read_only?(error) ? connection.reconnect! : connection.verify!
          rescue StandardError
            nil # the database is still away; the next use finds out again
          end

          # @return [String]
          def database
            connection.respond_to?(:pool) ? connection.pool.db_config.database.to_s : connection.database
          end

          # @return [String] SQL, true for this text and no other
          def exactly(column, text)
            "#{column} = #{quote(text)}"
          end

          # How to name a table in an UPDATE, DELETE or SELECT of known ids.
          def by_key(table)
            table.quoted
          end

          # @return [String, nil] where names without a schema are looked for, as far as the connection has been told
          def search_path
            connection.schema_search_path if connection.respond_to?(:schema_search_path)
          end

          # @param _sql [OutboxSQL]
          # @param _names [Array<Array(String, String)>] destinations that are known
          # @return [LowWater::Reading, nil] nil where what is published is in no claim's way
          def low_water(_sql, _names)
            nil
          end

          # The condition "not published", worded so that an index on it is not preferred to the ids beside it.
          def unpublished
            "published_at IS NULL"
          end

          # @return [Boolean] whether a column under the collation may take two different texts for equal, of which this is
          #   one
          def lookalikes?(collation, _text)
            !collation.nil?
          end

          # @param columns [Hash{String => ActiveRecord::ConnectionAdapters::Column}]
          # @return [Hash{String => String}] column to collation, see {Table#collation}
          def collations(_table, columns)
            columns.transform_values(&:collation).compact
          end

          # @return [Integer, nil] bytes, where statements are limited
          def longest_statement
            nil
          end

          # @return [String, nil] a character set that may not have all of Unicode
          def charset(_column)
            nil
          end

          def connection_charset
            nil
          end

          # @return [String] SQL for the time in `seconds` from now
          def ago(column, seconds)
            from_now(column, -seconds)
          end

          # @return [String] SQL, true while the time in the column has not passed
          def ahead(column)
            "#{column.name} >= #{now(column)}"
          end

          # @return [String] SQL, true once the time in the column has passed
          def passed(column)
            "#{column.name} < #{now(column)}"
          end

          # @return [String] SQL, true when the time in the column is at least so long ago
          def older(column, seconds)
            "#{column.name} <= #{ago(column, seconds)}"
          end

          # The same for old rows, worded for an index on the column.
          def long_past(column, seconds)
            "#{column.name} < #{ago(column, seconds)}"
          end

          # @return [String] SQL, true when the time in the column is not so long ago
          def lately(column, seconds)
            "#{column.name} > #{ago(column, seconds)}"
          end

          # @return [String] SQL for how far ahead the time in the column is
          def seconds_until(column)
            "-(#{seconds_since(column)})"
          end

          # @return [String] as the server names it
          def version
            rows("SELECT VERSION()", "AceMQ check").dig(0, 0).to_s
          end

          # @return [Boolean] whether the statements of claims are understood
          def version_supported?
            Gem::Version.new(version[/\d+(\.\d+)*/]) >= least_version
          end

          # @return [Float] seconds since 1970, by the database's clock
          def clock
            rows("SELECT #{clock_reading}", "AceMQ clock").dig(0, 0).to_f
          end

          # @return [String] SQL that `read_time` understands
          def readable_time(column)
            column.name
          end

          private

          # @return [Boolean] whether the key was nobody's
          def insert_claim(sql, key, owner)
            insert(sql.table, "message_id", sql.claimed_row(key, owner))
          end

          def zoned?(column)
            @zoned ||= {}.compare_by_identity
            @zoned.fetch(column) { @zoned[column] = column.sql_type.match?(/with time zone|timestamptz/i) }
          end

          # How columns without a time zone are to be read and written.
          def nominal
            @nominal ||= NominalTime.current
          end

          def offset
            nominal.offset
          end
        end
      end
    end
  end
end
