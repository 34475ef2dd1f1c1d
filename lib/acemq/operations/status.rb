# frozen_string_literal: true

require "time"
require_relative "../operations"

module AceMQ
  module Operations
    # An outbox at one moment.
    class Status
      # Seconds over which the rate is counted.
      WINDOW = 60

      # @return [Integer] rows
      attr_reader :pending, :retired
      # @return [Float, nil] seconds
      attr_reader :oldest
      # @return [Float] rows a second
      attr_reader :rate
      # @return [Hash{Array(String, String) => Integer}] rows in backoff, by exchange and routing key
      attr_reader :held
      # @return [Array<AMQP::Patterns::OutboxLease>]
      attr_reader :leases
      # @return [String]
      attr_reader :name
      # @return [Time]
      attr_reader :at

      # @param outbox [Outboxes::Named]
      # @raise [ActiveRecord::ActiveRecordError] when the database does not answer
      # @raise [AMQP::ConfigurationError] when the table is not there
      def initialize(outbox, window: WINDOW)
        store = outbox.store
        @name = outbox.name
        @pending = store.pending_count
        @oldest = store.oldest_pending_age
        @held = store.held
        @retired = store.retired_count
        @rate = store.published_within(window) / window.to_f
        @leases = store.leases
        @at = Time.now.utc
      end

      # @return [Hash] for JSON
      def to_h
        { outbox: name, at: at.iso8601(3), pending: pending, oldest_seconds: oldest&.round(3), published_per_second: rate.round(3),
          held: held.map { |(exchange, routing_key), rows| { exchange: exchange, routing_key: routing_key, rows: rows } },
          retired: retired, leases: leases.map { |lease| shown(lease) } }
      end

      private

      def shown(lease)
        { holder: lease.holder, since: lease.since&.iso8601(3), seconds_left: lease.seconds_left.round(3), rows: lease.rows }
      end
    end
  end
end
