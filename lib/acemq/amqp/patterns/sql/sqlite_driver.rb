# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module SQL
        # A `SQLite3::Database`, with or without `results_as_hash`.
        class SQLiteDriver
          DUPLICATE = "UNIQUE constraint failed"

          # @return [SQLite3::Database]
          attr_reader :raw

          # @param raw [SQLite3::Database]
          def initialize(raw)
            @raw = raw
          end

          # @param sql [String] one statement
          # @param params [Array]
          # @return [Result]
          # @raise [SQLite3::Exception]
          def run(sql, params = [])
            # A statement gives its rows by position; `execute` would give them as the connection is set up.
            rows = raw.prepare(sql) do |statement|
              statement.bind_params(params.map { |value| bound(value) })
              statement.to_a
            end
            Result.new(rows, raw.changes)
          end

          # @return [String]
          def placeholder(_index)
            "?"
          end

          # @return [Boolean] whether the error says that the key is there already, and nothing else
          def constraint_violation?(error)
            error.is_a?(::SQLite3::ConstraintException) && error.message.start_with?(DUPLICATE)
          end

          # @return [Boolean]
          def transaction_open?
            raw.transaction_active?
          end

          private

          def bound(value)
            value.is_a?(String) ? SQL.key(value) : value
          end
        end
      end
    end
  end
end
