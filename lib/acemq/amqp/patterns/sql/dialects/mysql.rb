# frozen_string_literal: true

require_relative "walking"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # MySQL 8 and MariaDB 10.5 and later.
        #
        # @api private
        class MySQL < Walking
          INDEX = %w[published_at exchange_name routing_key created_at].freeze

          NEEDS = "MySQL 8.0.1 or MariaDB 10.5, or newer"

          # The server is read-only, or the session's transactions are.
          READ_ONLY = [1290, 1792, 1836].freeze

          # Collations under which two texts are equal only when their bytes are; the second list apart from
          # trailing spaces.
          EXACT = /\A(?:binary|utf8mb4_0900_bin|\w+_nopad_bin)\z/
          EXACT_BUT_SPACES = /_bin\z/

          def product
            connection.respond_to?(:mariadb?) && connection.mariadb? ? "MariaDB" : "MySQL"
          end

          # Nothing but the duplicate key is rescued: MariaDB rolls the whole transaction back for some other
          # failures, and whoever goes on after those writes outside of it. INSERT IGNORE would cut what is too long.
          def insert(table, key, values)
            change(insert_into(table, values), "AceMQ add") == 1
          rescue ::ActiveRecord::RecordNotUnique
            refuse_lookalike(table, key, values.fetch(key))
            false
          end

          # Without it a list of ids may be answered by a scan that locks, and waits for, every row of the table.
          def by_key(table)
            "#{table.quoted} FORCE INDEX (PRIMARY)"
          end

          # @return [String] the isolation that sessions begin with
          def isolation
            rows("SELECT @@transaction_isolation", "AceMQ check").dig(0, 0)
          rescue ::ActiveRecord::StatementInvalid
            rows("SELECT @@tx_isolation", "AceMQ check").dig(0, 0) # MariaDB up to 11.1
          end

          def usual_isolation
            "READ-COMMITTED or REPEATABLE-READ"
          end

          def isolation_strict?(level)
            level == "SERIALIZABLE"
          end

          def byte_length(column)
            "LENGTH(#{column})"
          end

          def charset(column)
            column.collation&.then { |collation| collation[/\A[^_]+/] }
          end

          def connection_charset
            rows("SELECT @@character_set_client", "AceMQ check").dig(0, 0)
          end

          def longest_statement
            rows("SELECT @@max_allowed_packet", "AceMQ check").dig(0, 0).to_i
          end

          # The start of the statement, which moves inside a transaction and is not local time.
          def now(_column)
            offset.zero? ? "UTC_TIMESTAMP(6)" : "(UTC_TIMESTAMP(6) + INTERVAL #{offset} SECOND)"
          end

          # A column without fractions drops them: rounded up, so that no lease ends early.
          def from_now(column, seconds)
            seconds += 0.999999 if seconds.positive? && column.precision.to_i.zero?
            "#{now(column)} + INTERVAL #{(seconds * 1_000_000).to_i} MICROSECOND"
          end

          def time(time, _column)
            quote(nominal.format(time))
          end

          def readable_time(column)
            "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', #{column.name})"
          end

          def read_time(microseconds, _column)
            nominal.at(microseconds.to_i)
          end

          def destination_index?(index)
            index.columns.first(4) == INDEX
          end

          def lookalikes?(collation, text)
            return false if collation.nil? || EXACT.match?(collation)
            return text.end_with?(" ") if EXACT_BUT_SPACES.match?(collation)

            true
          end

          # The first condition is for the index, the second for what the collation takes for equal.
          def exactly(column, text)
            "#{super} AND CAST(#{column} AS BINARY) = #{quote(text)}"
          end

          private

          # Without a word about lookalikes, which {StoredKey} keeps apart.
          def insert_claim(sql, key, owner)
            change(insert_into(sql.table, sql.claimed_row(key, owner)), "AceMQ claim") == 1
          rescue ::ActiveRecord::RecordNotUnique
            false
          end

          def read_only?(error)
            error.cause.respond_to?(:error_number) && READ_ONLY.include?(error.cause.error_number)
          end

          def hint(index)
            "FORCE INDEX (#{connection.quote_column_name(index.name)})" if index
          end

          def behind(exchange, routing_key)
            exchange = quote(exchange)
            "(exchange_name > #{exchange} OR (exchange_name = #{exchange} AND routing_key > #{quote(routing_key)}))"
          end

          def least_version
            Gem::Version.new(product == "MariaDB" ? "10.5" : "8.0.1")
          end

          # The columns that name indexes, beside the table's.
          def explain(statement)
            rows("EXPLAIN #{statement}", "AceMQ plan").map { |row| row.compact.join(" ") }
          end

          def clock_reading
            "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000"
          end

          def seconds_since(column)
            "TIMESTAMPDIFF(MICROSECOND, #{column.name}, #{now(column)}) / 1000000"
          end

          # The form with an alias is the one that takes an index hint.
          def delete_by_key(table, key, values)
            "DELETE t FROM #{table.quoted} t FORCE INDEX (PRIMARY) WHERE t.#{key} IN (#{list(values)})"
          end

          # An id that only resembles one that is there already would be dropped as its repetition.
          def refuse_lookalike(table, key, value)
            return unless lookalikes?(table.collation(key), value.delete_prefix("'").delete_suffix("'"))

            there = rows("SELECT #{key} FROM #{table.quoted} WHERE #{key} = #{value}", "AceMQ add").dig(0, 0)
            return if there.nil? || quote(there) == value

            raise ArgumentError, "#{key} #{value} cannot be told from #{quote(there)}, which is there already, under the " \
                                 "collation #{table.collation(key)} of #{table.name}.#{key}; change that to utf8mb4_bin"
          end
        end
      end
    end
  end
end
