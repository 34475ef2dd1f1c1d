# frozen_string_literal: true

require_relative "sql/raw_database"
require_relative "sql/table_keys"

module AceMQ
  module AMQP
    module Patterns
      # Keys of work on a connection of the `pg` or `sqlite3` driver, without ActiveRecord, or on its raw connections.
      #
      # It does all that {ActiveRecordIdempotencyStore} does, with the same statements.
      #
      # @example
      #   store = AceMQ::AMQP::Patterns::SQLIdempotencyStore.new(connection: -> { Database.of_this_thread })
      #   store.create_schema
      class SQLIdempotencyStore
        include TableKeys

        # @param table [String]
        # @return [Array<String>] the statements that make the table and its index, for either database
        # @raise [ArgumentError] for what is no table name
        def self.ddl(table = IdempotencyTable::NAME)
          IdempotencyTable.ddl(Table.name!(table))
        end

        # Touches no database; {#check!} does.
        #
        # @param connection [PG::Connection, SQLite3::Database, #run, #call] or a callable that answers with it: a
        #   driver's connection is not to be used by two threads at a time
        # @param retention [Numeric] seconds
        # @param claim_timeout [Numeric] seconds
        # @param table [String]
        # @raise [ArgumentError]
        def initialize(connection:, retention: DEFAULT_RETENTION, claim_timeout: DEFAULT_CLAIM_TIMEOUT, table: IdempotencyTable::NAME)
          set_up(RawDatabase.new(connection, table, IdempotencyTable), retention: retention, claim_timeout: claim_timeout)
        end

        # Makes the table and its index where they are not there yet.
        #
        # @return [nil]
        def create_schema
          @database.create(self.class.ddl(table))
          nil
        end
      end
    end
  end
end
