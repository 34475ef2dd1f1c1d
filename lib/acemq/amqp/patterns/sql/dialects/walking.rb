# frozen_string_literal: true

require_relative "../../failpoint"
require_relative "base"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # For databases without RETURNING in an UPDATE, or without LATERAL: rows are paged in destination order,
        # leased, and read back, each in a statement of its own.
        #
        # @api private
        class Walking < Base
          # Times that a claim without order looks again, when others took what it had found.
          LOOKS = 8

          # @return [DestinationPage]
          def destination_page(sql, after, size)
            DestinationPage.of(rows(page(sql, after, size), "AceMQ claim"), size)
          end

          # @return [Array<String>] how the server would find candidates
          def claim_plan(sql)
            explain(page(sql, nil, 100))
          end

          # @return [Array<Array>] the rows that could be leased, as {OutboxRow.read} takes them, oldest first
          def lease(sql, ids, token, seconds)
            table = by_key(sql.table)
            leased = change("UPDATE #{table} SET #{sql.lease(token, seconds)} WHERE id IN (#{list(ids)}) AND #{sql.leasable}",
                            "AceMQ lease")
            return [] if leased.zero?

            Failpoint.reach(:mid_claim)
            rows("SELECT #{sql.columns(sql.short_body)} FROM #{table} WHERE id IN (#{list(ids)}) AND #{sql.owned_by(token)} " \
                 "ORDER BY created_at, id", "AceMQ read")
          end

          # @return [Array<Array>] the oldest rows that are free, see {#lease}
          def lease_oldest(sql, limit, token, seconds)
            leased = []
            LOOKS.times do
              wanted = limit - leased.size
              ids = rows("SELECT id FROM #{sql.table.quoted} WHERE #{sql.live} AND #{sql.free} " \
                         "ORDER BY created_at, id LIMIT #{wanted}", "AceMQ claim").flatten
              ids.sort.each_slice(SLICE) { |slice| leased.concat(lease(sql, slice, token, seconds)) }
              break if ids.size < wanted || leased.size == limit
            end
            leased
          end

          # @return [Float, nil] seconds
          def oldest_age(sql)
            rows("SELECT #{seconds_since(sql.created_at)} FROM #{sql.table.quoted} WHERE #{sql.live} " \
                 "ORDER BY created_at LIMIT 1", "AceMQ age").dig(0, 0)&.to_f
          end

          # Found first and deleted by key: a DELETE with a condition and a limit may scan the table and wait for
          # every open transaction that has added a row.
          #
          # @return [Integer]
          def purge(table, condition, key:, order:, batch:)
            ids = rows("SELECT #{key} FROM #{table.quoted} WHERE #{condition} ORDER BY #{order} LIMIT #{batch}",
                       "AceMQ purge").flatten
            sliced(ids) { |slice| change("#{delete_by_key(table, key, slice)} AND #{condition}", "AceMQ purge") }
          end

          private

          def page(sql, after, size)
            <<~SQL
              SELECT id, exchange_name, routing_key, CASE WHEN #{sql.held} THEN 1 ELSE 0 END
                FROM #{sql.table.quoted} #{hint(sql.destination_index)}
               WHERE #{sql.live} #{"AND #{behind(*after)}" if after}
               ORDER BY exchange_name, routing_key, created_at, id LIMIT #{size}
            SQL
          end
        end
      end
    end
  end
end
