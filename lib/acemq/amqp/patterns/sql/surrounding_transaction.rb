# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # The transaction that a statement ran in, if there was one, for another thread to ask about.
      #
      # @api private
      class SurroundingTransaction
        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter, RawConnection] that the statement ran on
        def initialize(connection)
          @connection = connection
          @owner = owner
        end

        # @return [Boolean] whether it is still open, or another one of the same owner
        def open?
          @connection.transaction_open? && owner.equal?(@owner)
        end

        private

        # A connection that is back in its pool has others' transactions.
        def owner
          @connection.owner if @connection.respond_to?(:owner)
        end
      end
    end
  end
end
