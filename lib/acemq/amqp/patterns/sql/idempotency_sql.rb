# frozen_string_literal: true

require_relative "../claim"

module AceMQ
  module AMQP
    module Patterns
      # The conditions and assignments of idempotency statements, in the words of one database.
      #
      # `expires_at` is the end of the lease while a key is CLAIMED and the end of its retention once it is
      # CONFIRMED. A store in the wild writes the retention from the start and judges a claim by `recorded_at`;
      # {#stale} reads rows of both.
      #
      # @api private
      class IdempotencySQL
        CLAIMED = "CLAIMED"
        CONFIRMED = "CONFIRMED"

        # What a dialect answers instead of {Claim::CLAIMED} when it took the key from an owner that never finished.
        TAKEN_OVER = :taken_over

        attr_reader :db, :table

        # @param db [Dialects::Base]
        # @param table [Table]
        # @param claim_timeout [Numeric] seconds
        # @param retention [Numeric] seconds
        def initialize(db, table, claim_timeout:, retention:)
          @db = db
          @table = table
          @claim_timeout = claim_timeout
          @retention = retention
        end

        def key_is(key)
          db.exactly("message_id", key)
        end

        def owned_by(owner)
          "claimed_by = #{db.quote(owner)}"
        end

        # @return [Hash{String => String}] column to SQL
        def claimed_row(key, owner)
          { "message_id" => db.quote(key), "state" => "'#{CLAIMED}'", "claimed_by" => db.quote(owner),
            "recorded_at" => db.now(recorded_at), "expires_at" => db.from_now(expires_at, @claim_timeout) }
        end

        # A claim that nobody will finish any more, or a confirmed key past its retention.
        def stale
          "(#{db.older(expires_at, 0)} OR (state <> '#{CONFIRMED}' AND #{db.older(recorded_at, @claim_timeout)}))"
        end

        def takeover(owner)
          "state = '#{CLAIMED}', #{owned_by(owner)}, recorded_at = #{db.now(recorded_at)}, " \
            "expires_at = #{db.from_now(expires_at, @claim_timeout)}"
        end

        def confirmed
          "state = '#{CONFIRMED}', expires_at = #{db.from_now(expires_at, @retention)}"
        end

        # @return [String] SQL, true while nobody has confirmed
        def unconfirmed
          "state = '#{CLAIMED}'"
        end

        # @return [String] SQL for the row of a key: its state, and 1 when it is stale
        def look(key)
          "SELECT state, CASE WHEN #{stale} THEN 1 ELSE 0 END FROM #{table.quoted} WHERE #{key_is(key)}"
        end

        # @param state [String, nil] of the row; nil when it went away in between
        # @param stale [Integer] as {#look} says
        # @yieldreturn [Boolean] whether a stale row could be taken over
        # @return [Symbol] {Claim} value, or {TAKEN_OVER}
        def answer(state = nil, stale = 0)
          done = state == CONFIRMED
          return done ? Claim::DUPLICATE : Claim::IN_PROGRESS if stale.to_i.zero?
          return Claim::IN_PROGRESS unless yield

          done ? Claim::CLAIMED : TAKEN_OVER
        end

        def recorded_at
          table["recorded_at"]
        end

        def expires_at
          table["expires_at"]
        end
      end
    end
  end
end
