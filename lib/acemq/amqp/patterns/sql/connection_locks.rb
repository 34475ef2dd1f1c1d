# frozen_string_literal: true

require "monitor"

module AceMQ
  module AMQP
    module Patterns
      # One lock for each driver's connection, which carries one statement at a time, whichever stores of the process were
      # given it.
      #
      # @api private
      class ConnectionLocks
        # A lock is kept for as long as somebody holds it or waits for it.
        @locks = ObjectSpace::WeakMap.new
        @lock = Mutex.new

        class << self
          # @param driver [PG::Connection, SQLite3::Database, #run]
          # @return [Object] the block's
          def holding(driver, &block)
            @lock.synchronize { @locks[driver] ||= Monitor.new }.synchronize(&block)
          end
        end
      end
    end
  end
end
