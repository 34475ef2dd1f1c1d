# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # What is known of each record of a batch; "not sent" until something else is.
        class Outcomes
          include Enumerable

          CONFIRMED = :confirmed
          UNSENT = :unsent

          # @return [Array<OutboxRecord>] in order
          attr_reader :records

          # @param records [Array<OutboxRecord>]
          def initialize(records)
            @records = records
            @known = {}.compare_by_identity
          end

          # @param outcome [Symbol, Failure] CONFIRMED, UNSENT or why not
          def note(record, outcome)
            @known[record] = outcome
            @connection_failed = true if outcome.is_a?(Failure) && outcome.scope == :connection
          end

          # @return [Symbol, Failure]
          def of(record)
            @known.fetch(record, UNSENT)
          end

          # @yieldparam record [OutboxRecord]
          # @yieldparam outcome [Symbol, Failure]
          def each
            records.each { |record| yield record, of(record) }
          end

          # @return [Array<OutboxRecord>]
          def confirmed
            records.select { |record| of(record) == CONFIRMED }
          end

          # @return [Array<Failure>] in the records' order
          def failures
            records.map { |record| of(record) }.grep(Failure)
          end

          # @return [Boolean] whether the link failed, so that nothing more can be sent over it
          def connection_failed?
            @connection_failed ? true : false
          end
        end
      end
    end
  end
end
