# frozen_string_literal: true

require "active_record"
require_relative "dialects"
require_relative "known_tables"
require_relative "table"
require_relative "table_update"

module AceMQ
  module AMQP
    module Patterns
      # The database behind a model: lends a connection for as long as a block runs and keeps none, so that a pool
      # has no connection of ours while nothing is done.
      #
      # @api private
      class Database
        # Connection failures come as either.
        FAILURES = [::ActiveRecord::StatementInvalid, ::ActiveRecord::ConnectionNotEstablished].freeze

        # What is known of tables, for all stores of the process.
        TABLES = KnownTables.new

        # @return [String] the table's name
        attr_reader :name

        # @param model [Class, nil] a model, or an abstract class that connects; ActiveRecord::Base when nil
        # @param table [String, nil] the model's own when nil
        # @param definition [Module] of the table: `NAME`, `COLUMNS`, `KEY`, `INSTALL`
        # @param shard [Symbol, nil] of the model's `connects_to`; the one at hand when nil
        def initialize(model, table, definition, shard: nil)
          unless model.nil? || (model.respond_to?(:connection_pool) && model.respond_to?(:table_name))
            raise ArgumentError, "model: must be an ActiveRecord class, not #{model.inspect}"
          end

          @model = model || ::ActiveRecord::Base
          @definition = definition
          @shard = shard&.to_sym
          table ||= @model.table_name unless @model.equal?(::ActiveRecord::Base) # which has none to be asked for
          @name = Table.name!(table || definition::NAME)
        end

        # @return [Array] the same for every store object of one table
        def place
          [@model.connection_specification_name, @shard, name]
        end

        # @return [String] {#place} in words: the table, and whose database it is in where that is not the application's first
        def label
          owner, shard, table = place
          [table, (owner unless owner == ::ActiveRecord::Base.name), shard].compact.join(" of ")
        end

        # For what belongs to the caller's transaction.
        #
        # @yieldparam db [Dialects::Base]
        # @yieldparam table [Table]
        def join(&block)
          return lend(&block) unless @shard

          ::ActiveRecord::Base.connected_to(role: @model.current_role, shard: @shard,
                                            prevent_writes: @model.current_preventing_writes) { lend(&block) }
        end

        # {#join}, for a write.
        #
        # @yieldparam (see #join)
        # @raise [ActiveRecord::ReadOnlyError] before anything is asked of the database
        def join_writing(&block)
          return join(&block) unless @model.current_preventing_writes

          raise ::ActiveRecord::ReadOnlyError, "#{@name} is written under the role #{@model.current_role.inspect}, which only " \
                                               "reads: write it where the work is done, under #{writing_role.inspect}"
        end

        # For what is done on behalf of a relay, whichever role the surrounding request reads with.
        #
        # @yieldparam (see #join)
        def write(&block)
          base = ::ActiveRecord::Base
          return base.connected_to(role: writing_role) { join(&block) } unless @model.current_role == writing_role
          return base.while_preventing_writes(false) { join(&block) } if @model.current_preventing_writes

          join(&block)
        end

        private

        def lend
          pool = @model.connection_pool
          pool.with_connection do |connection|
            db = Dialects.for(connection)
            yield db, TABLES.fetch(pool, @name) { Table.read(db, @name, @definition) }
          rescue *FAILURES => e
            TABLES.forget(pool, @name)
            db.mend(e)
            raise
          end
        end

        def writing_role
          ::ActiveRecord.respond_to?(:writing_role) ? ::ActiveRecord.writing_role : ::ActiveRecord::Base.writing_role
        end
      end
    end
  end
end
