# frozen_string_literal: true

require_relative "sql/database"
require_relative "sql/table_outbox"

module AceMQ
  module AMQP
    module Patterns
      # The outbox in a table of the application's database: PostgreSQL, MySQL, MariaDB or SQLite.
      #
      # The table is the one of all libraries of the family; rows that they wrote are relayed, and theirs can relay
      # what this one wrote. Leases and backoff are judged by the database's clock.
      #
      # @example
      #   Order.transaction do
      #     order = Order.create!(params)
      #     outbox.add(AceMQ::AMQP::Patterns.record(connection, order.as_json, to: "order.placed", exchange: "shop"))
      #   end
      class ActiveRecordOutboxStore
        include TableOutbox

        DEFAULT_LEASE = 30 # seconds
        DEFAULT_MAX_PAYLOAD = PayloadLimit::DEFAULT # bytes

        class << self
          # Makes the table and its indexes; the generated migration calls it.
          #
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param table [String]
          # @param by_time [Boolean] one index more on PostgreSQL, for relays with `ordering: :strict` or `:none` on a
          #   long backlog
          # @return [nil]
          def create_table(connection, table: OutboxTable::NAME, by_time: false)
            OutboxTable.create(connection, Table.name!(table), by_time: by_time)
            nil
          end

          # Gives a table that came from elsewhere the indexes that claims walk along.
          #
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param table [String]
          # @param by_time [Boolean] see {.create_table}
          # @param concurrently [Boolean] writers go on meanwhile, on PostgreSQL too; must be outside of a transaction
          # @return [nil]
          def add_indexes(connection, table: OutboxTable::NAME, by_time: false, concurrently: false)
            OutboxTable.add_indexes(connection, Table.name!(table), by_time: by_time, concurrently: concurrently)
            nil
          end

          # Gives a table that came from elsewhere, or from an earlier version, what {.create_table} makes today: the
          # indexes, microseconds, room for large bodies. Rows stay as they are. Outside of a transaction; writers go on
          # meanwhile on PostgreSQL, and on MariaDB from 11.2 on.
          #
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param table [String]
          # @param by_time [Boolean] see {.create_table}
          # @return [nil]
          def update_table(connection, table: OutboxTable::NAME, by_time: false)
            OutboxTable.update(connection, Table.name!(table), by_time: by_time)
            nil
          end
        end

        # Touches no database; {#check!} does.
        #
        # @param model [Class, nil] an ActiveRecord class: its connection and table are used. ActiveRecord::Base's
        #   connection when nil
        # @param table [String, nil] "acemq_outbox" when nil and no model says otherwise
        # @param shard [Symbol, nil] one of the model's `connects_to shards:`; the one at hand when nil
        # @param lease [Numeric] seconds; longer than the relay's confirm_timeout
        # @param max_attempts [Integer]
        # @param max_payload [Integer, nil] bytes of a body, before it is written as base64; nil for no limit of ours
        # @raise [ArgumentError]
        def initialize(model: nil, table: nil, shard: nil, lease: DEFAULT_LEASE, max_attempts: DEFAULT_MAX_ATTEMPTS,
                       max_payload: DEFAULT_MAX_PAYLOAD)
          set_up(Database.new(model, table, OutboxTable, shard: shard), lease: lease, max_attempts: max_attempts,
                                                                        max_payload: max_payload)
        end

        # Writes a record in the caller's transaction, if there is one. A record whose id is there already is not
        # written again, which harms no transaction.
        #
        # @param record [OutboxRecord] as {Patterns.record} makes them
        # @return [nil]
        # @raise [ArgumentError] for what the wire or the table cannot carry, before anything is written
        # @raise [ConfigurationError] when the table is not there
        # @raise [ActiveRecord::ActiveRecordError] what the database raises
        def add(record)
          write(record) { |insert| @database.join_writing(&insert) }
        end
      end
    end
  end
end
