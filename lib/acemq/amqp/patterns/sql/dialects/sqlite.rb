# frozen_string_literal: true

require_relative "walking"
require_relative "sqlite_patience"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # SQLite 3.25 and later.
        #
        # Tables of ActiveRecord keep times as "2026-01-02 03:04:05.678901", those of the family's other libraries
        # as "2026-01-02T03:04:05.678901Z". Each table is written in its own form; both are read in any.
        #
        # @api private
        class SQLite < Walking
          INDEX = %w[exchange_name routing_key created_at id].freeze

          NEEDS = "SQLite 3.25 or newer"

          # Sorts behind every time, and must not look like a number, which the column would turn it into.
          END_OF_TIME = "9999-12-31"

          TIME = /\A(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?\z/i

          def product
            "SQLite"
          end

          def rows(sql, name)
            patiently { super }
          end

          def change(sql, name)
            patiently { super }
          end

          # Looked at for the first time within a transaction. One that begins by reading cannot write any more once
          # somebody else has, whatever the timeout; so it begins by a statement that writes nothing.
          def before_reading(table)
            return unless connection.transaction_open?

            change("DELETE FROM #{connection.quote_table_name(table)} WHERE 0", "AceMQ check")
          rescue StandardError => e
            raise if SQLitePatience.busy?(e)
          end

          def unpublished
            "+published_at IS NULL"
          end

          def version
            rows("SELECT sqlite_version()", "AceMQ check").dig(0, 0)
          end

          # @return [String] writers take turns
          def isolation
            "serializable"
          end

          def usual_isolation
            isolation
          end

          def isolation_strict?(_level)
            false
          end

          def byte_length(column)
            "length(CAST(#{column} AS BLOB))"
          end

          # SQLite's clock has milliseconds; three more digits keep texts in the order of their times.
          def now(column)
            from_now(column, 0)
          end

          def from_now(column, seconds)
            shift = seconds + (zoned?(column) ? 0 : offset)
            modifier = format(", '%+.3f seconds'", shift) unless shift.zero?
            "strftime('#{zoned?(column) ? "%Y-%m-%dT%H:%M:%f000Z" : "%Y-%m-%d %H:%M:%f000"}', 'now'#{modifier})"
          end

          def time(time, column)
            return quote(nominal.format(time)) unless zoned?(column)

            quote(time.getutc.strftime("%Y-%m-%dT%H:%M:%S.%6NZ"))
          end

          def ahead(column)
            "#{day(column)} >= julianday('now')"
          end

          def passed(column)
            "#{day(column)} < julianday('now')"
          end

          def older(column, seconds)
            "#{day(column)} <= julianday('now', '#{format("%+.3f", -seconds)} seconds')"
          end

          # See {#long_past}.
          def lately(column, seconds)
            "#{column.name} > #{from_now(column, -86_400 - seconds)} AND " \
              "#{day(column)} >= julianday('now', '#{format("%+.3f", -seconds)} seconds')"
          end

          # Both forms differ within a day at most: the first two conditions find the stretch of an index, the third
          # is exact.
          def long_past(column, seconds)
            "#{column.name} > '' AND #{column.name} < #{from_now(column, 86_400 - seconds)} AND " \
              "#{day(column)} < julianday('now', '#{format("%+.3f", -seconds)} seconds')"
          end

          def read_time(text, _column)
            parts = TIME.match(text) or raise ArgumentError, "created_at #{text.inspect} is not a time"
            microseconds = parts[7].to_s.ljust(6, "0")[0, 6].to_i
            zone = parts[8]&.upcase
            shown = Time.utc(*parts[1..6].map(&:to_i), microseconds)
            return nominal.at((shown.to_i * 1_000_000) + microseconds) if zone.nil?

            zone == "Z" ? shown : shown - Time.zone_offset(zone)
          end

          def destination_index?(index)
            index.columns == INDEX && index.where.to_s.match?(/published_at IS NULL/i)
          end

          # By which keys are kept apart is what the index of the primary key goes by.
          def collations(table, _columns)
            index = rows("PRAGMA index_list(#{quote(table)})", "AceMQ check").find { |row| row[3] == "pk" } or return {}
            indexed = rows("PRAGMA index_xinfo(#{quote(index[1])})", "AceMQ check").select { |row| row[5] == 1 }
            indexed.to_h { |row| [row[2], row[4]] }.reject { |_, collation| collation == "BINARY" }
          end

          private

          def patiently(&block)
            SQLitePatience.new(connection).run(&block)
          end

          # A text with a zone says which instant it is; one without shows ActiveRecord's zone.
          def day(column)
            return "julianday(#{column.name})" if offset.zero?

            "(CASE WHEN #{column.name} LIKE '%Z' OR #{column.name} LIKE '%+__:__' THEN julianday(#{column.name}) " \
              "ELSE julianday(#{column.name}, '#{-offset} seconds') END)"
          end

          def hint(index)
            "INDEXED BY #{connection.quote_column_name(index.name)}" if index
          end

          # The third column lets the seek jump over a whole destination.
          def behind(exchange, routing_key)
            "(exchange_name, routing_key, created_at) > (#{list([exchange, routing_key, END_OF_TIME])})"
          end

          def least_version
            Gem::Version.new("3.25")
          end

          def explain(statement)
            rows("EXPLAIN QUERY PLAN #{statement}", "AceMQ plan").map(&:last)
          end

          def clock_reading
            "(julianday('now') - 2440587.5) * 86400.0"
          end

          def seconds_since(column)
            "(julianday('now') - #{day(column)}) * 86400.0"
          end

          def delete_by_key(table, key, values)
            "DELETE FROM #{table.quoted} WHERE #{key} IN (#{list(values)})"
          end
        end
      end
    end
  end
end
