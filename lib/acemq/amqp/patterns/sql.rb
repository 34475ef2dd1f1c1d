# frozen_string_literal: true

require_relative "../text"
require_relative "sql/pg_driver"
require_relative "sql/sqlite_driver"

module AceMQ
  module AMQP
    module Patterns
      # What {SQLOutboxStore} and {SQLIdempotencyStore} need of a driver's connection: `run(sql, params)`,
      # `placeholder(index)` and `constraint_violation?(error)`. An object that answers these itself is taken as it is.
      module SQL
        # @!attribute rows     [Array<Array>] values by position, whatever the connection is set up to return
        # @!attribute affected [Integer] rows changed
        Result = Struct.new(:rows, :affected) do
          alias_method :values, :rows
        end

        class << self
          # @param driver [PG::Connection, SQLite3::Database, #run]
          # @return [PGDriver, SQLiteDriver, #run]
          # @raise [ArgumentError] for anything else, an ActiveRecord connection among them
          def connect(driver)
            return driver if driver.respond_to?(:run) && driver.respond_to?(:placeholder)
            return PGDriver.new(driver) if driver.respond_to?(:exec_params)
            return SQLiteDriver.new(driver) if driver.respond_to?(:prepare) && driver.respond_to?(:transaction_active?)

            raise ArgumentError, "#{driver.class} is no connection of the pg or sqlite3 driver#{hint(driver)}"
          end

          # @param value [#to_s] a key, perhaps from the wire and so tagged as binary
          # @return [String] in UTF-8 where it is that: SQLite takes a binary string for a blob, which equals no text
          def key(value)
            Text.utf8(value.to_s) || value.to_s
          end

          private

          def hint(driver)
            return "" unless driver.respond_to?(:raw_connection)

            ": give its raw_connection, or use the ActiveRecord stores"
          end
        end
      end
    end
  end
end
