# frozen_string_literal: true

require_relative "columns"
require_relative "finding"
require_relative "refusal"

module AceMQ
  module Operations
    class Doctor
      # The table itself: its columns, what they can hold, the indexes that claims and purges walk along.
      class OutboxTable
        INSTALL = "bin/rails generate acemq:install, then bin/rails db:migrate"
        INDEX = "bin/rails generate acemq:install --existing, then bin/rails db:migrate; or " \
                "AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.add_indexes(connection, concurrently: true)"

        # @param outbox [Outboxes::Named]
        def initialize(outbox)
          @outbox = outbox
          @store = outbox.store
        end

        # @return [Finding, nil] why there is nothing to look at
        def unreachable
          @store.examine { nil }
        rescue AMQP::ConfigurationError => e
          problem, remedy = e.message.split(": ", 2)
          Finding.error(subject, problem, remedy || INSTALL)
        rescue ::ActiveRecord::ActiveRecordError => e
          Refusal.new(subject, e).finding
        end

        # @return [Array<Finding>]
        def examine
          @store.examine { |sql| [complete(sql), *capacities(sql), index(sql), purge_index(sql)].compact }
        end

        # @return [String]
        def subject
          "outbox #{@outbox.name}"
        end

        private

        def complete(sql)
          Finding.ok(subject, "all columns are there, in the #{sql.db.product} database #{sql.db.database.inspect}")
        end

        def capacities(sql)
          columns = Columns.new(subject, sql)
          [columns.precise("created_at", "published_at", "locked_until"), body(sql), columns.exact("id", "exchange_name", "routing_key")]
        end

        def body(sql)
          limit = sql.table["body"].limit
          wanted = @store.max_payload
          return if limit.nil? || (wanted && limit >= wanted)

          Finding.warning(subject, "the column body holds #{limit} bytes, and the store takes #{wanted || "any number of"} bytes",
                          Columns::UPDATE)
        end

        def index(sql)
          found = sql.destination_index
          return Finding.ok(subject, "claims walk along the index #{found.name}") if found

          Finding.warning(subject, "there is no index that claims can walk along: they work, and get slower with the backlog", INDEX)
        end

        def purge_index(sql)
          return if sql.table.indexes.any? { |index| Array(index.columns).first.to_s == "published_at" }

          Finding.warning(subject, "there is no index by published_at: a purge reads the whole table", INDEX)
        end
      end
    end
  end
end
