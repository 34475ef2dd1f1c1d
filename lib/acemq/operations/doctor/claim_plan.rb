# frozen_string_literal: true

require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # Along which index the database would look for what is to be claimed.
      class ClaimPlan
        # Rows from which on a plan that reads the whole table is felt.
        LONG = 1_000

        # @param outbox [Outboxes::Named]
        def initialize(outbox)
          @store = outbox.store
        end

        # @return [Array<Finding>] none where there is no such index, which has been said
        def examine
          @store.examine { |sql| sql.destination_index ? [plan(sql, sql.destination_index.name)] : [] }
        end

        private

        def plan(sql, index)
          lines = sql.db.claim_plan(sql)
          return Finding.ok("claim", "is planned along #{index}") if lines.any? { |line| line.include?(index) }

          pending = sql.db.rows("SELECT COUNT(*) FROM #{sql.table.quoted} WHERE #{sql.live}", "AceMQ count").dig(0, 0).to_i
          return Finding.ok("claim", "reads the whole table, which is right while it is so short") if pending < LONG

          Finding.warning("claim", "is not planned along #{index}: #{lines.first(3).map(&:strip).join(" / ")}", "ANALYZE #{@store.table}")
        end
      end
    end
  end
end
