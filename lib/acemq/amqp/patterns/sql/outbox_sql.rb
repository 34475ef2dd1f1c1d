# frozen_string_literal: true

require_relative "failure_text"

module AceMQ
  module AMQP
    module Patterns
      # The conditions and columns of outbox statements, in the words of one database.
      #
      # | a row is | when |
      # |---|---|
      # | live | not published and below the ceiling of attempts |
      # | leased | `locked_by` is set and `locked_until` is ahead |
      # | backing off | `locked_by` is null and `locked_until` is ahead |
      # | held | one of these two |
      # | retired | not published, and at the ceiling |
      #
      # @api private
      class OutboxSQL
        # A body up to this size comes with its row; longer ones are fetched while there is room for them.
        INLINE_BODY = 64 * 1024

        attr_reader :db, :table, :max_attempts
        # @return [LowWaterMark, nil] before which nothing is claimable
        attr_reader :mark

        # @param db [Dialects::Base]
        # @param table [Table]
        # @param max_attempts [Integer]
        # @param ignore_backoff [Boolean] whether only leases count as held
        def initialize(db, table, max_attempts, ignore_backoff: false)
          @db = db
          @table = table
          @max_attempts = max_attempts
          @ignore_backoff = ignore_backoff
        end

        def live
          "published_at IS NULL AND attempts < #{max_attempts}"
        end

        # What marks depend on besides the table: the same name may be another table on another search path.
        #
        # @return [Array]
        def view
          [max_attempts, db.search_path]
        end

        # Live, as far as a claim looks.
        def claimable
          mark ? "#{live} AND created_at >= #{db.time(mark.oldest, created_at)}" : live
        end

        # @param mark [LowWaterMark, nil]
        # @return [OutboxSQL]
        def since(mark)
          mark ? dup.tap { |other| other.mark = mark } : self
        end

        def retired
          "published_at IS NULL AND attempts >= #{max_attempts}"
        end

        def held
          leases = "locked_by IS NOT NULL AND " if @ignore_backoff
          "(#{leases}locked_until IS NOT NULL AND #{db.ahead(locked_until)})"
        end

        def free
          unleased = "locked_by IS NULL OR " if @ignore_backoff
          "(#{unleased}locked_until IS NULL OR #{db.passed(locked_until)})"
        end

        # Asked again while the row is locked: what was seen free may have been taken since.
        def leasable
          "#{db.unpublished} AND attempts < #{max_attempts} AND #{free}"
        end

        def lease(token, seconds)
          "locked_by = #{db.quote(token)}, locked_until = #{db.from_now(locked_until, seconds)}"
        end

        def released
          "locked_by = NULL, locked_until = NULL"
        end

        def published
          "published_at = #{db.now(published_at)}, #{released}"
        end

        # @return [String] the reason as `last_error` can keep it
        def last_error(reason)
          table.writable("last_error", FailureText.of(reason, table["last_error"].limit || FailureText::LIMIT))
        end

        def owned_by(token)
          "locked_by = #{db.quote(token)}"
        end

        # In the order that {OutboxRow.read} takes them.
        #
        # @param body [String] what is read of the body, {#short_body} or all of it
        def columns(body)
          "id, exchange_name, routing_key, #{body} AS read_body, #{db.byte_length("body")} AS body_bytes, " \
            "body_encoding, content_type, headers, #{db.readable_time(created_at)} AS written_at, attempts"
        end

        def short_body
          "CASE WHEN #{db.byte_length("body")} <= #{INLINE_BODY} THEN body END"
        end

        # @return [ActiveRecord::ConnectionAdapters::IndexDefinition, nil] the one that claims walk along
        def destination_index
          @destination_index ||= table.indexes.find { |index| db.destination_index?(index) }
        end

        def created_at
          table["created_at"]
        end

        def published_at
          table["published_at"]
        end

        def locked_until
          table["locked_until"]
        end

        protected

        attr_writer :mark
      end
    end
  end
end
