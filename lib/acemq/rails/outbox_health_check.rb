# frozen_string_literal: true

require_relative "../operations"

module AceMQ
  module Rails
    # Whether there are rows that will not be tried again, for a page that people are told by.
    #
    # @example a named check of the application's own
    #   AceMQ::Rails::OutboxHealthCheck.call # => {status: :degraded, dead_letter_count: 2}
    class OutboxHealthCheck
      # @param store [AMQP::Patterns::ActiveRecordOutboxStore]
      # @return [Hash] `:status`, `:ok` or `:degraded`, and `:dead_letter_count`
      # @raise [ActiveRecord::ActiveRecordError] when the database does not answer
      def self.call(store = AMQP::Patterns::ActiveRecordOutboxStore.new)
        dead = store.retired_count
        { status: dead.zero? ? :ok : :degraded, dead_letter_count: dead }
      end
    end
  end
end
