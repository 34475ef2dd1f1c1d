# frozen_string_literal: true

require_relative "connection_locks"
require_relative "dialects"
require_relative "known_tables"
require_relative "raw_connection"
require_relative "table"

module AceMQ
  module AMQP
    module Patterns
      # The database behind drivers' connections: {Database} without ActiveRecord.
      #
      # @api private
      class RawDatabase
        # @return [String] the table's name
        attr_reader :name

        # @param connection [Object, #call] a driver's connection, or what answers with one whenever it is called
        # @param relay [Object, #call, nil] the same, for all that is no part of a caller's transaction
        # @param definition [Module] of the table: `NAME`, `COLUMNS`, `KEY`, `INSTALL`
        # @raise [ArgumentError]
        def initialize(connection, table, definition, relay: nil)
          @name = Table.name!(table)
          @definition = definition
          @connection = checked(connection)
          @relay = relay ? checked(relay) : @connection
          @tables = KnownTables.new
        end

        # @return [Array] the same for every store object of one table and connection
        def place
          [@relay, name]
        end

        # @return [String] what to call it in front of people
        def label
          name
        end

        # For what belongs to the caller's transaction.
        #
        # @param own [Object, #call, nil] the connection that the transaction is on
        # @yieldparam db [Dialects::Base]
        # @yieldparam table [Table]
        def join(own = nil, &block)
          lend(own || @connection, &block)
        end

        # For what is done on behalf of a relay, or commits by itself.
        #
        # @yieldparam (see #join)
        def write(&block)
          lend(@relay) do |db, table|
            block.call(db, table)
          rescue StandardError => e
            db.mend(e) unless @relay.respond_to?(:call) # whose affair it is to give a connection that works
            raise
          end
        end

        # @param statements [Array<String>] that make the table and its indexes, where they are not there yet
        def create(statements)
          on(@relay) { |db| statements.each { |statement| db.connection.create(statement) } }
        end

        private

        def checked(connection)
          RawConnection.of(connection) unless connection.respond_to?(:call)
          connection
        end

        def lend(source)
          on(source) do |db|
            yield db, @tables.fetch(self, @name) { Table.read(db, @name, @definition) }
          rescue StandardError
            @tables.forget(self, @name)
            raise
          end
        end

        def on(source)
          driver = source.respond_to?(:call) ? source.call : source
          ConnectionLocks.holding(driver) { yield Dialects.for(RawConnection.of(driver)) }
        end
      end
    end
  end
end
