# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Which rows a claim tries to lease: lists of ids, each of which is in order and has no gap.
      #
      # @api private
      class Candidates
        # @param walk [DestinationWalk] remembers where the last claim ended
        def initialize(walk)
          @walk = walk
        end

        # @param ordering [Symbol] `:destination` or `:strict`
        # @param sql [OutboxSQL]
        # @return [Array<Array<String>>]
        def find(ordering, sql, limit)
          case ordering
          when :destination then @walk.candidates(limit) { |after, size| sql.db.destination_page(sql, after, size) }
          when :strict then [oldest(sql, limit)]
          end
        end

        private

        # The first held row of the table stops everything behind it.
        def oldest(sql, limit)
          found = sql.db.rows("SELECT id, CASE WHEN #{sql.held} THEN 1 ELSE 0 END FROM #{sql.table.quoted} " \
                              "WHERE #{sql.claimable} ORDER BY created_at, id LIMIT #{limit}", "AceMQ claim")
          found.take_while { |_, held| held.to_i.zero? }.map(&:first)
        end
      end
    end
  end
end
