# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Which keys this execution (a fiber) has claimed, and under which token. Whoever confirms inside a handler
      # does so in the execution that claimed, often on another store object of the same table.
      #
      # @api private
      class ExecutionClaims
        # @!attribute stored    [String] the key as the column has it
        # @!attribute owner     [String] token of this one claim
        # @!attribute confirmed [Boolean]
        Entry = Struct.new(:stored, :owner, :confirmed)

        # Confirmed entries are kept for a second confirm; of those that were never finished some may be forgotten
        # as well, but only when there are very many.
        FINISHED = 100
        UNFINISHED = 10_000

        VARIABLE = :acemq_idempotency_claims

        class << self
          # @return [Entry, nil]
          def [](table, key)
            entries[[table, key]]
          end

          def put(table, key, entry)
            entries.delete([table, key])
            entries[[table, key]] = entry
            trim
          end

          def delete(table, key)
            entries.delete([table, key])
          end

          private

          # Thread#[] belongs to the fiber.
          def entries
            Thread.current[VARIABLE] ||= {}
          end

          def trim
            return if entries.size <= FINISHED

            finished, unfinished = entries.partition { |_, entry| entry.confirmed }
            (finished[0...-FINISHED] + unfinished[0...-UNFINISHED]).each { |name, _| entries.delete(name) }
          end
        end
      end
    end
  end
end
