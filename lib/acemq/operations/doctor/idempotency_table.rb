# frozen_string_literal: true

require_relative "columns"
require_relative "finding"
require_relative "refusal"

module AceMQ
  module Operations
    class Doctor
      # The keys of messages that were handled. An application without consumers has no such table.
      class IdempotencyTable
        # @param name [String, nil]
        def initialize(name)
          @name = name
          @store = AMQP::Patterns::ActiveRecordIdempotencyStore.new(table: name)
        end

        # @return [Array<Finding>]
        def examine
          [*@store.examine { |sql| shape(sql) }, expired].compact
        rescue AMQP::ConfigurationError => e
          problem, remedy = e.message.split(": ", 2)
          return [Finding.error(subject, problem, remedy)] if @name || !problem.end_with?("does not exist")

          [Finding.ok(subject, "there is none: needed where messages are handled")]
        rescue ::ActiveRecord::ActiveRecordError => e
          refusal = Refusal.new(subject, e)
          refusal.away? ? [] : [refusal.finding] # the outbox has said that
        end

        private

        def subject
          "idempotency #{@store.table}"
        end

        def shape(sql)
          columns = Columns.new(subject, sql)
          [Finding.ok(subject, "all columns are there"), columns.precise("recorded_at", "expires_at"), columns.exact("message_id"),
           index(sql)]
        end

        def index(sql)
          return if sql.table.indexes.any? { |index| Array(index.columns).first.to_s == "expires_at" }

          Finding.warning(subject, "there is no index by expires_at: a purge reads the whole table", Columns::UPDATE)
        end

        def expired
          count = @store.expired_count
          return if count.zero?

          Finding.warning(subject, "#{count} keys are past their retention", "acemq purge --only idempotency, daily")
        end
      end
    end
  end
end
