# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Tables that were read, by connection pool. Stores are made as often as applications like, one per call among
      # them, and share this.
      #
      # @api private
      class KnownTables
        # Pools come and go where an application connects again and again; beyond this, what was read is read again.
        LIMIT = 200

        def initialize
          @tables = Hash.new { |pools, pool| pools[pool] = {} }.compare_by_identity
          @lock = Mutex.new
        end

        # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
        # @param name [String]
        # @yieldreturn [Table] when it is not known; not kept when the block raises
        # @return [Table]
        def fetch(pool, name)
          @lock.synchronize { @tables.dig(pool, name) } || yield.tap { |table| keep(pool, name, table) }
        end

        # A statement that failed may have shown that the table is not what it was.
        def forget(pool, name)
          @lock.synchronize { @tables[pool].delete(name) }
        end

        def clear
          @lock.synchronize { @tables.clear }
        end

        private

        def keep(pool, name, table)
          @lock.synchronize do
            @tables.clear if @tables.size >= LIMIT
            @tables[pool][name] = table
          end
        end
      end
    end
  end
end
