# frozen_string_literal: true

require_relative "sql/database"
require_relative "sql/table_keys"

module AceMQ
  module AMQP
    module Patterns
      # Keys of work that is done, and claims on work that is being done, in a table of the application's database:
      # PostgreSQL, MySQL, MariaDB or SQLite.
      #
      # A claim belongs to the execution that made it, the fiber that runs the handler: `confirm` and `forget` work
      # there, on any store object of the same table, and nowhere else. Claims must commit by themselves, so claim
      # outside of a transaction; confirm inside the one that does the work, and both are one event.
      #
      # @example
      #   STORE = AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new
      #   AceMQ::AMQP::Patterns.idempotent(STORE) do |message|
      #     Order.transaction do
      #       Payments.charge!(message.payload)
      #       STORE.confirm(message.envelope.id)
      #     end
      #     accept
      #   end
      class ActiveRecordIdempotencyStore
        include TableKeys

        class << self
          # Makes the table and its index; the generated migration calls it.
          #
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param table [String]
          # @return [nil]
          def create_table(connection, table: IdempotencyTable::NAME)
            IdempotencyTable.create(connection, Table.name!(table))
            nil
          end

          # Gives a table that came from elsewhere what {.create_table} makes today. Keys stay as they are. Outside of a
          # transaction; see {ActiveRecordOutboxStore.update_table}.
          #
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param table [String]
          # @return [nil]
          def update_table(connection, table: IdempotencyTable::NAME)
            IdempotencyTable.update(connection, Table.name!(table))
            nil
          end
        end

        # Touches no database; {#check!} does.
        #
        # @param model [Class, nil] an ActiveRecord class: its connection and table are used. ActiveRecord::Base's
        #   connection when nil
        # @param table [String, nil] "acemq_idempotency" when nil and no model says otherwise
        # @param retention [Numeric] seconds
        # @param claim_timeout [Numeric] seconds
        # @raise [ArgumentError]
        def initialize(model: nil, table: nil, retention: DEFAULT_RETENTION, claim_timeout: DEFAULT_CLAIM_TIMEOUT)
          set_up(Database.new(model, table, IdempotencyTable), retention: retention, claim_timeout: claim_timeout)
        end
      end
    end
  end
end
