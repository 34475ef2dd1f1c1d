# frozen_string_literal: true

require "json"
require_relative "exit_code"
require_relative "progress"
require_relative "usage"

module AceMQ
  module CLI
    # `acemq purge`: both tables, or one of them.
    class Purging
      # @param outboxes [Enumerable<Operations::Outboxes::Named>]
      # @param options [Hash] of the command
      # @param older_than [Float] seconds
      def initialize(outboxes, options, older_than)
        @outboxes = outboxes
        @options = options
        @older_than = older_than
        @purge = Usage.check do
          Operations::Purge.new(batch: options[:batch], pause: options[:pause], dry_run: options[:dry_run])
        end
      end

      # @return [Integer] exit code
      def run
        results = {}
        results.merge!(outboxes) unless @options[:only] == "idempotency"
        results.merge!(idempotency) unless @options[:only] == "outbox"
        puts JSON.generate(dry_run: @options[:dry_run] ? true : false, removed: results) if @options[:json]
        ExitCode::OK
      end

      private

      def outboxes
        @outboxes.to_h do |outbox|
          [outbox.name, shown(outbox.name, "published rows") do |progress|
            @purge.outbox(outbox.store, older_than: @older_than, &progress)
          end]
        end
      end

      # Every application has an outbox; not every one has this table.
      def idempotency
        store = AMQP::Patterns::ActiveRecordIdempotencyStore.new(table: @options[:idempotency_table])
        { store.table => shown(store.table, "expired keys") { |progress| @purge.idempotency(store, &progress) } }
      rescue AMQP::ConfigurationError
        raise if @options[:only] || @options[:idempotency_table]

        {}
      end

      def shown(name, what)
        verb = @options[:dry_run] ? "would be removed" : "removed"
        progress = Progress.new(name)
        found = yield(->(so_far) { progress.tell("#{name}: #{so_far} #{what} #{verb}") unless @options[:json] })
        progress.tell("#{name}: #{found} #{what} #{verb}", last: true) unless @options[:json]
        found
      end
    end
  end
end
