# frozen_string_literal: true

require_relative "blame"
require_relative "../../clock"
require_relative "instrument"
require_relative "lanes"
require_relative "outcomes"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Publishes the rows of one claim, for as long as that makes sense.
        class Batch
          # Seconds beyond every deadline of its own after which a batch is ended from here.
          GRACE = 5.0

          # @param rows [ClaimingStore::Rows, PendingStore::Rows]
          # @param outcomes [Outcomes] told of each record
          # @param result [Result] told of what fails as a whole
          # @param link [Link]
          # @param options [Options]
          # @param shutdown [Shutdown]
          # @param states [States]
          # @param reporter [Reporter] told of an alarm, if nobody waits for the batch
          # @param explicit [Boolean] somebody waits for it
          def initialize(rows, outcomes, result, link:, options:, shutdown:, states:, reporter:, explicit:)
            @rows = rows
            @outcomes = outcomes
            @result = result
            @link = link
            @options = options
            @shutdown = shutdown
            @states = states
            @reporter = reporter
            @explicit = explicit
            @publishing = link.publishing(options, shutdown)
            @lanes = Lanes.new(options.ordering, options.on_retire)
          end

          def publish
            waiting = readable
            until waiting.empty?
              now, waiting = @lanes.before_and_behind_failed(waiting)
              break unless send_slices(now)
            end
          end

          private

          # @return [Boolean] whether to go on
          def send_slices(records)
            records.each_slice(@publishing.at_once).all? do |slice|
              @rows.renew_if_due
              next false if over?

              sendable = slice.reject { |record| @lanes.shut?(record) }
              sendable.empty? || send_together(sendable)
            end
          end

          # What cannot be made a message is judged without being sent.
          def readable
            unreadable, readable = @rows.records.partition { |record| record.body.nil? }
            unreadable.each { |record| @outcomes.note(record, Blame.of_unreadable(record)) }
            shut_lanes(unreadable)
            readable
          end

          def over?
            @shutdown.requested? || @outcomes.stopped_by || @lanes.all_shut? || !@rows.ours?
          end

          # @return [Boolean] whether to go on
          def send_together(records)
            send_by = @rows.send_by
            @waiting_since = Clock.now
            @blocked_since = nil
            @patience = send_by + @options.confirm_timeout + GRACE
            sent = @result.attempt(:connection) do
              Instrument.publish(@options.store, records, @outcomes) do
                @publishing.publish(records, @outcomes, send_by: send_by) { |ticket| between_slices(ticket) }
              end
              true
            end
            shut_lanes(records)
            sent && @result.attempt(:store) { @rows.sent(records, @outcomes) }
          end

          def shut_lanes(records)
            records.each do |record|
              outcome = @outcomes.of(record)
              next if outcome == Outcomes::CONFIRMED

              outcome.is_a?(Failure) ? @lanes.note(record, outcome) : @lanes.shut(record)
            end
          end

          def between_slices(ticket)
            renew(ticket)
            reason = @link.blocked_reason
            note_block(reason) if reason
            @states.enter(reason ? :blocked : :publishing, reason)
            give_up(reason) if out_of_patience?(reason)
          end

          # What is still to be written may be, for as long as the lease lasts now.
          def renew(ticket)
            return unless @rows.renew_if_due

            ticket.send_by(@rows.send_by) if ticket.respond_to?(:send_by)
            @waiting_since = Clock.now
          end

          def note_block(reason)
            @waiting_since = Clock.now
            @reporter.blocked(reason) unless @explicit
          end

          def give_up(blocked)
            @result.add_block(blocked) if blocked
            :cancel
          end

          # The background thread sits an alarm out, because a new connection would only send the same message once
          # more. Whoever called sweep is not kept waiting for longer than for a confirm.
          def out_of_patience?(blocked)
            now = Clock.now
            @blocked_since = blocked ? @blocked_since || now : nil
            return @explicit && now - @blocked_since > @options.confirm_timeout if blocked

            now - @waiting_since > @patience
          end
        end
      end
    end
  end
end
