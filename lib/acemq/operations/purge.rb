# frozen_string_literal: true

require_relative "../amqp/patterns/sql/purging"
require_relative "../operations"

module AceMQ
  module Operations
    # Removes what is no longer needed, in small statements with pauses between them: published rows of an outbox past
    # their time, and keys of an idempotency table past their retention.
    class Purge
      # Seconds that published rows are kept: an auditing decision, and enough to compare with a queue.
      KEEP = 7 * 24 * 3600
      # Rows of one statement.
      BATCH = 500
      # Seconds between two statements.
      PAUSE = 0.05

      # @param batch [Integer]
      # @param pause [Numeric] seconds
      # @param dry_run [Boolean] only count
      # @raise [ArgumentError]
      def initialize(batch: BATCH, pause: PAUSE, dry_run: false)
        AMQP::Patterns::Purging.new(batch, pause)
        @batch = batch
        @pause = pause
        @dry_run = dry_run
      end

      # @param store [AMQP::Patterns::ActiveRecordOutboxStore]
      # @param older_than [Numeric] seconds
      # @yieldparam removed [Integer] rows so far
      # @return [Integer] rows removed, or to be removed
      def outbox(store, older_than: KEEP, &progress)
        return store.purgeable_count(older_than) if @dry_run

        store.purge_published(older_than, batch: @batch, pause: @pause, &progress)
      end

      # @param store [AMQP::Patterns::ActiveRecordIdempotencyStore]
      # @yieldparam removed [Integer] keys so far
      # @return [Integer] keys removed, or to be removed
      def idempotency(store, &progress)
        return store.expired_count if @dry_run

        store.purge_expired(batch: @batch, pause: @pause, &progress)
      end
    end
  end
end
