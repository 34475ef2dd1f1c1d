# frozen_string_literal: true

require "securerandom"
require_relative "../claim"
require_relative "../claim_renewer"
require_relative "../execution_claims"
require_relative "../hit_rate"
require_relative "idempotency_table"
require_relative "idempotency_sql"
require_relative "purging"
require_relative "settings"
require_relative "stored_key"
require_relative "surrounding_transaction"
require_relative "table_store"

module AceMQ
  module AMQP
    module Patterns
      # What an idempotency store does with its table, whichever way the table is reached;
      # {ActiveRecordIdempotencyStore} and {SQLIdempotencyStore} are that way.
      module TableKeys
        include TableStore

        # Seconds a confirmed key is remembered: longer than the longest way of a duplicate.
        DEFAULT_RETENTION = 86_400
        # Seconds an unfinished claim is honoured: longer than the slowest handler.
        DEFAULT_CLAIM_TIMEOUT = 300

        # @return [Numeric] seconds
        attr_reader :retention
        # @return [Numeric] seconds
        attr_reader :claim_timeout
        # @return [HitRate] what came of the claims that {Patterns.idempotent} asked this object for
        attr_reader :hit_rate

        # @param key [String]
        # @return [Symbol] {Claim}`::CLAIMED`: do the work; `DUPLICATE`: it is done; `IN_PROGRESS`: somebody is at it
        # @raise [ArgumentError] for an empty key
        def claim(key)
          key = key!(key)
          owner = SecureRandom.uuid
          stored, answer = on_database do |sql|
            stored = StoredKey.of(sql.db, sql.table, key)
            [stored, answer_of_others(sql, key) || sql.db.claim(sql, stored, owner)]
          end
          taken_over = answer == IdempotencySQL::TAKEN_OVER
          return answer unless taken_over || answer == Claim::CLAIMED

          ExecutionClaims.put(@database.place, key, ExecutionClaims::Entry.new(stored, owner, false, taken_over))
          Claim::CLAIMED
        end

        # @param key [String]
        # @return [Boolean] whether the key is this caller's to work on
        def first_time?(key)
          claim(key) == Claim::CLAIMED
        end

        # @param key [String]
        # @return [Boolean] whether this execution's claim replaced that of an owner that never finished
        def taken_over?(key)
          ExecutionClaims[@database.place, key!(key)]&.taken_over || false
        end

        # What prolongs this execution's claim by another `claim_timeout`, from whichever thread. It changes nothing while
        # the transaction is open in which the key was confirmed: the row belongs to it.
        #
        # @param key [String]
        # @return [Proc, nil] answers whether the claim still stands, or `:later` where only the end of that transaction
        #   will tell; nil when this execution has not claimed the key
        # @raise [StandardError] the Proc, what the database raises
        def renewal(key)
          entry = ExecutionClaims[@database.place, key!(key)] or return
          -> { entry.settling&.open? ? ClaimRenewer::LATER : on_database { |sql| renew_row(sql, entry) } }
        end

        # The work is done: from now on the key is a duplicate. Inside the transaction that does the work the two are
        # one event. Again, it changes nothing.
        #
        # @param key [String]
        # @return [Boolean] false, with nothing changed, when this execution has not claimed the key
        # @raise [ClaimLostError] when the claim went stale and somebody else has it: let it roll the work back
        def confirm(key)
          key = key!(key)
          entry = ExecutionClaims[@database.place, key] or return false
          on_database do |sql|
            entry.settling = SurroundingTransaction.new(sql.db.connection)
            next if entry.confirmed && confirmed_by?(sql, entry)

            confirm_row(sql, entry) || raise(ClaimLostError, lost(key))
          end
          entry.confirmed = true
        end

        # The work was not done: gives the key back at once.
        #
        # @param key [String]
        # @return [Boolean] false, with nothing changed, when the key is not this execution's, or is confirmed
        def forget(key)
          key = key!(key)
          entry = ExecutionClaims.delete(@database.place, key) or return false
          on_database do |sql|
            sql.db.change("DELETE FROM #{sql.table.quoted} WHERE #{mine(sql, entry)} AND #{sql.unconfirmed}", "AceMQ forget")
          end == 1
        end

        # @param key [String]
        # @return [Boolean] whether the work of the key is done, and remembered
        def confirmed?(key)
          key = key!(key)
          on_database do |sql|
            forms = [StoredKey.of(sql.db, sql.table, key), StoredKey.of_others(sql.db, sql.table, key)].compact
            forms.any? { |form| state(sql, form) == IdempotencySQL::CONFIRMED }
          end
        end

        # Removes keys past their retention and claims past their lease, in statements of `batch` rows each.
        #
        # @param batch [Integer]
        # @param pause [Numeric] seconds between two statements
        # @yieldparam removed [Integer] rows removed so far, after each statement
        # @return [Integer] rows removed
        def purge_expired(batch: 500, pause: 0, &progress)
          Purging.new(batch, pause).run(progress) do
            on_database do |sql|
              sql.db.purge(sql.table, sql.db.long_past(sql.expires_at, 0), key: "message_id", order: "expires_at", batch: batch)
            end
          end
        end

        # @return [Integer] rows that {#purge_expired} would remove
        def expired_count
          on_database do |sql|
            sql.db.rows("SELECT COUNT(*) FROM #{sql.table.quoted} WHERE #{sql.db.long_past(sql.expires_at, 0)}", "AceMQ count")
               .dig(0, 0).to_i
          end
        end

        # @return [Integer] rows of the table, expired ones included
        def size
          on_database { |sql| sql.db.rows("SELECT COUNT(*) FROM #{sql.table.quoted}", "AceMQ count").dig(0, 0).to_i }
        end

        # @return [String]
        def inspect
          "#<#{self.class.name} table=#{table} retention=#{retention}s claim_timeout=#{claim_timeout}s>"
        end

        private

        def set_up(database, retention:, claim_timeout:)
          @database = database
          @retention = Settings.seconds!(retention, "retention")
          @claim_timeout = Settings.seconds!(claim_timeout, "claim_timeout")
          @hit_rate = HitRate.new
        end

        def on_database
          @database.write do |db, table|
            yield IdempotencySQL.new(db, table, claim_timeout: claim_timeout, retention: retention)
          end
        end

        def key!(key)
          key = key.to_s
          raise ArgumentError, "the idempotency key is empty: everything would be one and the same" if key.empty?

          key
        end

        # @return [Symbol, nil] nil when no other store's row stands in the way
        def answer_of_others(sql, key)
          form = StoredKey.of_others(sql.db, sql.table, key) or return
          found = state(sql, form) or return
          sql.answer(found)
        end

        # @return [String, nil] of a row with exactly this key that is not stale
        def state(sql, form)
          sql.db.rows("SELECT message_id, state FROM #{sql.table.quoted} WHERE #{sql.key_is(form)} AND NOT #{sql.stale}",
                      "AceMQ claim").find { |message_id, _| message_id.b == form.b }&.last
        end

        def confirmed_by?(sql, entry)
          sql.db.rows("SELECT state FROM #{sql.table.quoted} WHERE #{mine(sql, entry)}", "AceMQ confirm")
             .dig(0, 0) == IdempotencySQL::CONFIRMED
        end

        def confirm_row(sql, entry)
          sql.db.change("UPDATE #{sql.db.by_key(sql.table)} SET #{sql.confirmed} WHERE #{mine(sql, entry)}", "AceMQ confirm") == 1
        end

        def renew_row(sql, entry)
          sql.db.change("UPDATE #{sql.db.by_key(sql.table)} SET #{sql.takeover(entry.owner)} " \
                        "WHERE #{mine(sql, entry)} AND #{sql.unconfirmed}", "AceMQ renew") == 1
        end

        def mine(sql, entry)
          "#{sql.key_is(entry.stored)} AND #{sql.owned_by(entry.owner)}"
        end

        def lost(key)
          "the claim on #{key.inspect} was taken over or removed, because it was older than claim_timeout " \
            "(#{claim_timeout} s): roll back what was done for it, or give the store a longer claim_timeout"
        end
      end
    end
  end
end
