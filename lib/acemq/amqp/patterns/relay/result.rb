# frozen_string_literal: true

require_relative "failure"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # What came of one round: what was published, what failed first to last, what was retired.
        class Result
          # @return [Integer] rows claimed
          attr_reader :claimed
          # @return [Array<OutboxRecord>] published
          attr_reader :confirmed
          # @return [Array<Failure>] in the order in which they were met
          attr_reader :failures
          # @return [Array<Failure>] of the records that will not be tried again
          attr_reader :retired

          def initialize
            @claimed = 0
            @confirmed = []
            @failures = []
            @retired = []
            @reached = false
          end

          # The broker answered.
          def reached!
            @reached = true
          end

          # @return [Boolean] whether there is proof that the broker is there
          def reached?
            @reached
          end

          # @param outcomes [Outcomes]
          def learn(outcomes)
            @claimed = outcomes.records.size
            @confirmed = outcomes.confirmed
            @failures.concat(outcomes.failures.uniq { |failure| cause(failure) })
          end

          # @param scope [Symbol] :connection or :store
          # @param error [Exception]
          def add_failure(scope, error)
            @failures << Failure.new(error: error, scope: scope, permanent: false)
          end

          # Runs a step that can fail as a whole.
          #
          # @param scope [Symbol] :connection or :store
          # @return [Object, nil] the block's, nil when it failed
          def attempt(scope)
            yield
          rescue StandardError => e
            add_failure(scope, e)
            nil
          end

          # @return [Integer]
          def published
            confirmed.size
          end

          # @return [Exception, nil] what a sweep raises
          def first_error
            failures.first&.error
          end

          # @return [Failure, nil] the first one of a scope
          def failed(scope)
            failures.find { |failure| failure.scope == scope }
          end

          # @return [Boolean] whether there may be more to publish right away
          def more?(batch)
            claimed >= batch && published.positive?
          end

          private

          # A lost link takes every record of the batch along, a destination all of its own: once is enough to know.
          def cause(failure)
            case failure.scope
            when :connection then :connection
            when :destination then [failure.record.exchange, failure.record.routing_key]
            else failure
            end
          end
        end
      end
    end
  end
end
