# frozen_string_literal: true

require_relative "failure"
require_relative "lanes"
require_relative "outcomes"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Turns what is known of a batch into what the store is told: who is marked, who is charged, who holds its
        # destination, who is given back untouched.
        class Verdicts
          Lists = Struct.new(:confirmed, :failed, :held, :unsent, keyword_init: true)

          # @param ordering [Symbol] :destination, :strict or :none
          # @param on_retire [Symbol] :continue or :hold
          def initialize(ordering, on_retire)
            @ordering = ordering
            @on_retire = on_retire
          end

          # @param outcomes [Outcomes]
          # @return [Lists] keywords of a claim's `settle`
          def lists(outcomes)
            lanes = Lanes.new(@ordering, @on_retire)
            lists = Lists.new(confirmed: [], failed: [], held: [], unsent: [])
            outcomes.each { |record, outcome| settle(record, judged(record, outcome, outcomes), lanes, lists) }
            lists
          end

          private

          # Without an order nobody waits behind anybody: what was kept back for its destination waits by itself.
          def judged(record, outcome, outcomes)
            return outcome if outcomes.charges?(outcome) || outcome == Outcomes::CONFIRMED
            return outcomes.held_by(record) || Outcomes::UNSENT if @ordering == :none

            Outcomes::UNSENT
          end

          def settle(record, outcome, lanes, lists)
            if outcome == Outcomes::CONFIRMED
              lists.confirmed << record.id
            elsif outcome != Outcomes::UNSENT && !lanes.shut?(record)
              lanes.note(record, outcome)
              charge(record, outcome, lists)
            else
              # Whoever follows a record of unknown fate cannot be judged either: only a head is charged.
              lanes.shut(record)
              lists.unsent << record.id
            end
          end

          def charge(record, failure, lists)
            if holds?(failure)
              lists.held << [record.id, failure.reason]
            else
              lists.failed << [record.id, failure.reason, failure.permanent]
            end
          end

          def holds?(failure)
            return true if @on_retire == :hold

            failure.scope == :destination && @ordering != :strict
          end
        end
      end
    end
  end
end
