# frozen_string_literal: true

require_relative "sql/raw_database"
require_relative "sql/table_outbox"

module AceMQ
  module AMQP
    module Patterns
      # The outbox on connections of the `pg` or `sqlite3` driver, without ActiveRecord, or on its raw connections.
      #
      # It does all that {ActiveRecordOutboxStore} does, with the same statements.
      #
      # @example
      #   store = AceMQ::AMQP::Patterns::SQLOutboxStore.new(connection: -> { Database.of_this_thread }, relay: PG.connect(url))
      #   store.create_schema
      class SQLOutboxStore
        include TableOutbox

        DEFAULT_LEASE = 60.0 # seconds, the family's

        # @param table [String]
        # @return [Array<String>] the statements that make the table and its indexes, for either database
        # @raise [ArgumentError] for what is no table name
        def self.ddl(table = OutboxTable::NAME)
          OutboxTable.ddl(Table.name!(table))
        end

        # Touches no database; {#check!} does.
        #
        # @param connection [PG::Connection, SQLite3::Database, #run, #call] what records are added on, or a callable
        #   that answers with it: a driver's connection is not to be used by two threads at a time
        # @param relay [PG::Connection, SQLite3::Database, #run, #call, nil] the same for everything else; `connection`
        #   when nil. Another one than transactions are open on, or the relay sees, and sends, what is not committed
        # @param table [String]
        # @param max_attempts [Integer]
        # @param lease [Numeric] seconds; longer than the relay's confirm_timeout
        # @param max_payload [Integer, nil] bytes of a body, before it is written as base64; nil for no limit of ours
        # @raise [ArgumentError]
        def initialize(connection:, relay: nil, table: OutboxTable::NAME, max_attempts: DEFAULT_MAX_ATTEMPTS, lease: DEFAULT_LEASE,
                       max_payload: nil)
          set_up(RawDatabase.new(connection, table, OutboxTable, relay: relay), lease: lease, max_attempts: max_attempts,
                                                                                max_payload: max_payload)
        end

        # Makes the table and its indexes where they are not there yet.
        #
        # @return [nil]
        def create_schema
          @database.create(self.class.ddl(table))
          nil
        end

        # Writes a record in the caller's transaction, if there is one. A record whose id is there already is not
        # written again, which harms no transaction.
        #
        # @param record [OutboxRecord] as {Patterns.record} makes them
        # @param connection [PG::Connection, SQLite3::Database, #run, #call, nil] the one that the transaction is on; the
        #   store's own when nil
        # @return [nil]
        # @raise [ArgumentError] for what the wire or the table cannot carry, before anything is written
        # @raise [ConfigurationError] when the table is not there
        # @raise [PG::Error, SQLite3::Exception] what the database raises
        def add(record, connection: nil)
          write(record) { |insert| @database.join(connection, &insert) }
        end

        # @param limit [Integer] {MAX_BATCH} when not positive
        # @return [Array<OutboxRecord>] leased, oldest first
        def pending(limit = 0)
          super(limit.to_i.positive? ? limit : MAX_BATCH)
        end

        # @return [Integer] see {#pending_count}
        def size
          pending_count
        end
      end
    end
  end
end
