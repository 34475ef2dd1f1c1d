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
            @full = false
            @blocked = false
            @reached = false
          end

          # The broker takes nothing at present.
          def blocked!
            @blocked = true
          end

          def blocked?
            @blocked
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
          # @param full [Boolean] whether the claim left something for another one
          def learn(outcomes, full:)
            @full = full
            @claimed = outcomes.records.size
            @confirmed = outcomes.confirmed
            charged = outcomes.failures.select { |failure| outcomes.charges?(failure) }
            @failures.concat(charged.uniq { |failure| cause(failure) })
          end

          # @param failure [Failure] of the link; one of many records
          def stopped(failure)
            @failures << failure.dup.tap { |stop| stop.scope = :connection }
          end

          # @param scope [Symbol] :connection or :store
          # @param error [Exception]
          def add_failure(scope, error)
            @failures << Failure.new(error: error, scope: scope, permanent: false)
          end

          BLOCKED = "the broker has blocked publishing (%s)"

          # @param reason [String] the broker's
          def add_block(reason)
            add_failure(:connection, PublishingPausedError.new(format(BLOCKED, reason)))
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
          def more?
            @full && published.positive?
          end

          private

          # A destination takes all of its records along: once is enough to know.
          def cause(failure)
            record = failure.record
            failure.scope == :destination ? [record.exchange, record.routing_key] : record.id
          end
        end
      end
    end
  end
end
