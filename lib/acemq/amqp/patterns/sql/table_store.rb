# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # What every store knows of its table.
      module TableStore
        # @return [String] the table's name
        def table
          @database.name
        end

        # @return [Array] the same for every store object of one table
        # @api private
        def place
          @database.place
        end

        # @yieldparam sql [OutboxSQL, IdempotencySQL] the words of this table's database
        # @return [Object] the block's
        # @api private
        def examine(&block)
          on_database(&block)
        end

        # @return [String] what events and metrics call it: "acemq_outbox", "acemq_outbox of Shop"
        # @api private
        def label
          @database.label
        end

        # Looks whether the table is there and complete, for a boot that should rather fail than start.
        #
        # @return [self]
        # @raise [ConfigurationError] naming the table, what it lacks, and what to run
        def check!
          @database.write { self }
        end
      end
    end
  end
end
