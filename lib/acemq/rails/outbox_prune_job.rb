# frozen_string_literal: true

require "active_job"
require_relative "../operations"

module AceMQ
  module Rails
    # Removes what is no longer needed: published rows, and keys of messages past their retention. Daily is enough.
    #
    # @example config/recurring.yml of Solid Queue
    #   outbox_prune:
    #     class: AceMQ::Rails::OutboxPruneJob
    #     args: [{ older_than: 2592000 }]
    #     schedule: every day at 4am
    class OutboxPruneJob < ::ActiveJob::Base
      # Seconds that published rows are kept: a comfortable window for an audit.
      KEEP = 30 * 24 * 3600

      # @param older_than [Numeric] seconds; only published rows
      # @return [Hash{String => Integer}] rows removed, by table
      def perform(older_than: KEEP)
        purge = Operations::Purge.new
        stores = [store, idempotency_store].compact
        stores.to_h { |one| [one.table, one.equal?(stores.first) ? purge.outbox(one, older_than: older_than) : purge.idempotency(one)] }
      end

      # @return [AMQP::Patterns::ActiveRecordOutboxStore]
      def store
        AMQP::Patterns::ActiveRecordOutboxStore.new
      end

      # @return [AMQP::Patterns::ActiveRecordIdempotencyStore, nil] nil when the application has no such table
      def idempotency_store
        AMQP::Patterns::ActiveRecordIdempotencyStore.new.check!
      rescue AMQP::ConfigurationError
        nil
      end
    end
  end
end
