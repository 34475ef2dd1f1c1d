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
            @held = {}
            @stops = []
          end

          # @param outcome [Symbol, Failure] CONFIRMED, UNSENT or why not
          def note(record, outcome)
            @known[record] = outcome
            return unless outcome.is_a?(Failure)

            @stops << outcome unless charges?(outcome)
            @held[[record.exchange, record.routing_key]] ||= outcome if outcome.scope == :destination
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

          # @return [Failure, nil] the failure that the rest of a record's destination waits behind
          def held_by(record)
            @held[[record.exchange, record.routing_key]]
          end

          # @return [Failure, nil] of the link, or why nothing was written where nothing else explains it
          def stopped_by
            @stops.find { |failure| failure.scope == :connection } || @stops.find { |failure| !held_by(failure.record) }
          end

          # @return [Boolean] whether the record or its destination answers for it
          def charges?(outcome)
            outcome.is_a?(Failure) && %i[record destination].include?(outcome.scope)
          end
        end
      end
    end
  end
end
