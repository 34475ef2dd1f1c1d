# frozen_string_literal: true

require "json"
require_relative "exit_code"

module AceMQ
  module CLI
    # `acemq retry`: shows what is retired, and brings it back.
    class Retrying
      # Rows that are listed one by one.
      SHOWN = 20

      # @param outboxes [Enumerable<Operations::Outboxes::Named>]
      # @param ids [Array<String>]
      # @param options [Hash] of the command
      def initialize(outboxes, ids, options)
        @outboxes = outboxes
        @ids = ids
        @exchange, @routing_key = destination(options[:destination])
        @error = options[:error]
        @dry_run = options[:dry_run]
        @json = options[:json]
      end

      # @return [Integer] exit code: {ExitCode::FOUND} when ids were named that are not retired
      def run
        found = @outboxes.map { |outbox| [outbox, chosen(outbox.store)] }
        brought = found.sum { |outbox, records| @dry_run ? records.size : bring_back(outbox.store, records) }
        missing = @ids - found.flat_map { |_, records| records.map(&:id) }
        @json ? show_json(found, brought, missing) : show(found, brought, missing)
        missing.empty? ? ExitCode::OK : ExitCode::FOUND
      end

      private

      # "order.placed" is a routing key of any exchange, "shop/order.placed" names both, "/orders" is the default
      # exchange's. A routing key may have slashes of its own.
      def destination(text)
        return [nil, nil] if text.nil?

        text.include?("/") ? text.split("/", 2) : [nil, text]
      end

      def chosen(store)
        store.retired(store.retired_count).select do |record|
          (@ids.empty? || @ids.include?(record.id)) && [nil, record.exchange].include?(@exchange) &&
            [nil, record.routing_key].include?(@routing_key) && record.error.to_s.include?(@error.to_s)
        end
      end

      def bring_back(store, records)
        store.retry!(records.map(&:id))
      end

      def show(found, brought, missing)
        records = found.flat_map(&:last)
        records.first(SHOWN).each { |record| puts "#{record.id}  #{record.exchange}/#{record.routing_key}  #{record.error}" }
        puts "... and #{records.size - SHOWN} more" if records.size > SHOWN
        puts @dry_run ? "#{brought} rows would be brought back" : "#{brought} rows brought back"
        puts "not retired: #{missing.join(", ")}" if missing.any?
      end

      def show_json(found, brought, missing)
        rows = found.flat_map do |outbox, records|
          records.map do |record|
            { outbox: outbox.name, id: record.id, exchange: record.exchange, routing_key: record.routing_key, error: record.error }
          end
        end
        puts JSON.generate(retried: @dry_run ? 0 : brought, dry_run: @dry_run ? true : false, rows: rows, not_retired: missing)
      end
    end
  end
end
