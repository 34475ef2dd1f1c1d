# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Which keys this execution (a fiber) has claimed, and the token that proves each.
      #
      # By execution, not by process or store object: two threads of one process must not settle each other's claims,
      # and `Store.new.confirm(key)` inside a handler must find the claim that another object of the same store made.
      #
      # @api private
      class ExecutionClaims
        # @!attribute stored     [String] the key as the store has it
        # @!attribute owner      [Object] token of this one claim
        # @!attribute confirmed  [Boolean]
        # @!attribute taken_over [Boolean] whether an owner that never finished had the key before
        # @!attribute settling   [#open?, nil] the transaction that its confirm ran in, nil before there was one
        Entry = Struct.new(:stored, :owner, :confirmed, :taken_over, :settling)

        # An execution has a handful of claims at a time. What is beyond was never settled (`first_time?` and nothing
        # after it), or was confirmed long ago: the oldest are forgotten, and with them the right to settle them.
        LIMIT = 1_000

        VARIABLE = :acemq_idempotency_claims

        class << self
          # @param place [Object] what the key is about: a table of a database, or a window
          # @return [Entry, nil]
          def [](place, key)
            entries[[place, key]]
          end

          def put(place, key, entry)
            entries.delete([place, key])
            entries[[place, key]] = entry
            entries.shift if entries.size > LIMIT
          end

          # @return [Entry, nil]
          def delete(place, key)
            entries.delete([place, key])
          end

          private

          # Thread#[] belongs to the fiber. A forked child has copies of its parent's, and no right to settle them.
          def entries
            process, claims = Thread.current[VARIABLE]
            return claims if process == Process.pid

            {}.tap { |fresh| Thread.current[VARIABLE] = [Process.pid, fresh] }
          end
        end
      end
    end
  end
end
