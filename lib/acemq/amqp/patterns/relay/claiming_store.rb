# frozen_string_literal: true

require_relative "../failpoint"
require_relative "../../clock"
require_relative "instrument"
require_relative "verdicts"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # A store that leases rows under a claim, and can renew, charge, hold and release them.
        class ClaimingStore
          # @param store [#claim]
          # @param options [Options]
          def initialize(store, options)
            @store = store
            @options = options
            @verdicts = Verdicts.new(options.ordering, options.on_retire)
            @kept = []
          end

          # Tells the store what it would not hear last time. Done before anything is claimed: a confirmed row that is
          # not marked would be published again.
          #
          # @return [Array<Failure>] what was retired by it
          def settle_kept
            retired = []
            until @kept.empty?
              retired.concat(tell(*@kept.first))
              @kept.shift
            end
            retired
          end

          # @param ignore_backoff [Boolean] an order: backoff does not count
          # @return [Rows]
          def take(ignore_backoff:)
            Failpoint.reach(:before_claim)
            rows = claim = nil
            asked_at = Clock.now
            Instrument.claim(@store, @options.batch) do
              claim = @store.claim(@options.batch, ordering: @options.ordering, ignore_backoff: ignore_backoff)
            end
            Failpoint.reach(:after_claim) unless claim.records.empty?
            rows = Rows.new(self, claim, asked_at, @options.batch)
          ensure
            give_back(claim) if claim && !rows
          end

          # @param claim [#settle]
          # @param outcomes [Outcomes]
          # @return [Array<Failure>] what was retired
          def settle(claim, outcomes)
            told = nil
            told = tell(claim, outcomes)
          ensure
            @kept << [claim, outcomes] unless told
          end

          private

          # Nobody will hear of its records.
          def give_back(claim)
            claim.settle(confirmed: [], failed: [], held: [], unsent: claim.records.map(&:id))
          rescue StandardError
            nil # the lease's end will
          end

          def tell(claim, outcomes)
            lists = @verdicts.lists(outcomes)
            Failpoint.reach(:after_confirm) unless lists.confirmed.empty?
            gone = Instrument.mark(@store, lists) { claim.settle(**lists.to_h) }.retired
            return [] if gone.empty?

            outcomes.failures.select { |failure| gone.include?(failure.record.id) }
                    .each { |failure| Instrument.retire(@store, failure) }
          end

          # Rows under one claim.
          class Rows
            # The part of a lease that is left unused, for the last message to reach the broker within it.
            MARGIN = 0.1

            # @return [Array<OutboxRecord>]
            attr_reader :records

            # @param asked_at [Float] on {Clock}, before the database was: the lease began then or later
            # @param batch [Integer] rows asked for
            def initialize(store, claim, asked_at, batch)
              @store = store
              @batch = batch
              @claim = claim
              @records = claim.records
              leased_at(asked_at)
            end

            # @return [Boolean] whether there may be more to claim
            def full?
              @claim.respond_to?(:full?) ? @claim.full? : records.size >= @batch
            end

            # Called between slices of waiting. A renewal that fails is tried again; the lease's end is the backstop.
            #
            # @return [Boolean] whether {#send_by} answers anew
            def renew_if_due
              now = Clock.now
              return false if now < @renew_at

              @renew_at = now + (@claim.lease / 6.0)
              if @claim.renew == records.size
                leased_at(now)
              else
                @lost = true
              end
              true
            rescue StandardError
              false
            end

            # @return [Float] seconds in which the rows are certainly still this claim's
            def send_by
              @lost ? 0.0 : [@until - Clock.now, 0.0].max
            end

            # @return [Boolean] whether more of them may be sent
            def ours?
              send_by.positive?
            end

            # Marks wait for the end of the batch: one statement instead of one a row.
            def sent(_records, _outcomes)
              true
            end

            # @return [Array<Failure>] what was retired
            def settle(outcomes)
              @store.settle(@claim, outcomes)
            end

            private

            def leased_at(time)
              @renew_at = time + (@claim.lease / 3.0)
              @until = time + (@claim.lease * (1 - MARGIN))
            end
          end
        end
      end
    end
  end
end
