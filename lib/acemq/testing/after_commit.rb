# frozen_string_literal: true

module AceMQ
  module Testing
    # Runs something once the application's transaction has committed, and not when it was rolled back; at once where
    # there is none. The transaction that a test framework wraps around each example is none of the application's.
    #
    # @api private
    class AfterCommit
      # @param store [Object]
      # @yield
      def self.of(store, &block)
        connection = store.examine { |sql| sql.db.connection } if store.respond_to?(:examine)
        return block.call unless connection.respond_to?(:current_transaction) && connection.current_transaction.joinable?

        connection.add_transaction_record(new(block))
      end

      def initialize(block)
        @block = block
      end

      # What ActiveRecord tells a record of its transaction, and asks of it.

      def committed!(*, **)
        @block.call
      end

      def rolledback!(*, **); end

      def before_committed!(*); end

      def add_to_transaction(*); end

      def trigger_transactional_callbacks?
        true
      end

      def has_transactional_callbacks?
        true
      end

      def destroyed?
        false
      end

      def _new_record_before_last_commit
        false
      end
    end
  end
end
