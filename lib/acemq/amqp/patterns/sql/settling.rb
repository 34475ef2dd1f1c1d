# frozen_string_literal: true

require_relative "backoff"
require_relative "failure_text"

module AceMQ
  module AMQP
    module Patterns
      # The statements that end leases, each with its own words about what is known of the row.
      #
      # @api private
      class Settling
        # @param sql [OutboxSQL]
        # @param token [String] of the claim
        def initialize(sql, token)
          @sql = sql
          @token = token
        end

        # @return [Array(Integer, Integer)] rows marked, and rows that were not ours any more
        def mark(ids)
          ids = ids.uniq
          ours = update(ids, @sql.published)
          late = ours < ids.size ? mark_whoever_holds_them(ids) : 0
          [ours + late, ids.size - ours]
        end

        # A confirm is a fact: what the broker has must not be sent again because a lease ran out.
        #
        # @return [Integer] rows marked
        def mark_whoever_holds_them(ids)
          db.sliced(ids) do |slice|
            db.change("UPDATE #{db.by_key(@sql.table)} SET #{@sql.published} " \
                      "WHERE id IN (#{db.list(slice)}) AND #{db.unpublished}", "AceMQ mark")
          end
        end

        # The record's own failure. Backs off until the ceiling, which retires it.
        #
        # @param ids [Array<String>] of records that failed for one reason
        # @param reason [String, Exception, Object, nil]
        # @param attempts [Integer] their failures so far
        # @return [Integer] rows changed
        def charge(ids, reason, attempts)
          update(ids, "#{because(reason)}, attempts = attempts + 1, #{wait(attempts)}")
        end

        # @return [Integer] rows changed: 1 or 0
        def retire(id, reason)
          update([id], "#{because(reason)}, attempts = #{@sql.max_attempts}, #{@sql.released}")
        end

        # The destination's failure: waits like one that failed, but is never retired for it.
        #
        # @return [Integer] rows changed
        def hold(ids, reason, attempts)
          one_more = "attempts = CASE WHEN attempts + 1 < #{@sql.max_attempts} THEN attempts + 1 ELSE attempts END"
          update(ids, "#{because(reason)}, #{one_more}, #{wait(attempts)}")
        end

        # @return [Integer] rows changed
        def release(ids)
          update(ids, @sql.released)
        end

        # @return [Integer] rows changed
        def renew(ids, seconds)
          update(ids, "locked_until = #{db.from_now(@sql.locked_until, seconds)}")
        end

        private

        def db
          @sql.db
        end

        def update(ids, assignments)
          db.sliced(ids) do |slice|
            db.change("UPDATE #{db.by_key(@sql.table)} SET #{assignments} " \
                      "WHERE id IN (#{db.list(slice)}) AND #{@sql.owned_by(@token)}", "AceMQ settle")
          end
        end

        def because(reason)
          "last_error = #{db.quote(@sql.last_error(reason))}"
        end

        def wait(attempts)
          "locked_by = NULL, locked_until = #{db.from_now(@sql.locked_until, Backoff.seconds(attempts))}"
        end
      end
    end
  end
end
