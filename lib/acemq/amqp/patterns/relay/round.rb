# frozen_string_literal: true

require_relative "batch"
require_relative "result"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # One turn of the relay: what is owed to the store, the way to the broker, a claim, a batch.
        class Round
          # @param link [Link]
          # @param store [ClaimingStore, PendingStore]
          # @param options [Options]
          # @param states [States]
          # @param shutdown [Shutdown]
          # @param reporter [Reporter]
          # @param explicit [Boolean] a sweep that somebody called
          # @param ignore_backoff [Boolean] whether rows that wait after a failure are taken all the same
          def initialize(link:, store:, options:, states:, shutdown:, reporter:, explicit:, ignore_backoff: explicit)
            @link = link
            @store = store
            @options = options
            @states = states
            @shutdown = shutdown
            @reporter = reporter
            @explicit = explicit
            @ignore_backoff = ignore_backoff
            @result = Result.new
          end

          # @return [Result]
          def call
            publish if settled_up? && reachable?
            failure = @result.failed(:connection)
            @result.blocked! if failure && @link.blocked?(failure.error)
            @states.enter(*state)
            @result
          end

          private

          def settled_up?
            retired = @result.attempt(:store) { @store.settle_kept }
            @result.retired.concat(retired) if retired
          end

          def reachable?
            connected = @result.attempt(:connection) { connect } or return false
            reason = @link.blocked_reason
            @result.add_block(reason) if reason
            @result.reached! if connected == :connected
            reason.nil? && connected != :stopping
          end

          # The thread's own dial ends when the relay is to stop; a sweep's is its caller's business.
          def connect
            return dial if @explicit

            @shutdown.while_wanted { dial } || :stopping
          end

          def dial
            @link.connect ? :connected : :unknown
          end

          # Rows in nobody's hands would stay leased: from the claim until they are in this one's, an interrupt comes only
          # where the database is waited for, and once they are, anywhere in the publishing.
          def publish
            Thread.handle_interrupt(Object => :on_blocking) do
              rows = @result.attempt(:store) { @store.take(ignore_backoff: @ignore_backoff) }
              publish_and_settle(rows, Outcomes.new(rows.records)) unless rows.nil? || rows.records.empty?
            end
          end

          # Settles even when the publishing was interrupted: by a timeout, say, or the death of the thread.
          def publish_and_settle(rows, outcomes)
            Thread.handle_interrupt(Object => :immediate) { publish_batch(rows, outcomes) }
          ensure
            learn(rows, outcomes)
            retired = @result.attempt(:store) { rows.settle(outcomes) }
            @result.retired.concat(retired) if retired
          end

          def publish_batch(rows, outcomes)
            @states.enter(:publishing)
            Batch.new(rows, outcomes, @result, link: @link, options: @options, shutdown: @shutdown, states: @states,
                                               reporter: @reporter, explicit: @explicit).publish
          end

          def learn(rows, outcomes)
            @result.learn(outcomes, full: rows.full?)
            stop = outcomes.stopped_by
            @result.stopped(stop) if stop && !our_own_doing?(stop, rows)
          end

          # What was not written because the relay is to stop, or because its lease was over, is nobody's failure.
          def our_own_doing?(stop, rows)
            @shutdown.cancelled? || (stop.scope == :unsent && (@shutdown.requested? || !rows.ours?))
          end

          def state
            store = @result.failed(:store)
            return [:down, "database: #{store.reason}"] if store

            failure = @result.failed(:connection)
            return :idle unless failure

            [@result.blocked? ? :blocked : :down, @link.blocked_reason || failure.reason]
          end
        end
      end
    end
  end
end
