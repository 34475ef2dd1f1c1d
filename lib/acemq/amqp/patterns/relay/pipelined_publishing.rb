# frozen_string_literal: true

require_relative "blame"
require_relative "outcomes"
require_relative "wire"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Publishing over the native transport: the whole batch is submitted, and its ticket waited for in slices,
        # so that the lease can be renewed in between.
        class PipelinedPublishing
          SLICE = 0.5 # seconds
          # Seconds for a cancelled ticket to say what it knows.
          LAST_WORD = 2.0

          # @param transport [#submit]
          # @param options [Options]
          # @param shutdown [Shutdown]
          def initialize(transport, options, shutdown)
            @transport = transport
            @options = options
            @shutdown = shutdown
            @wire = Wire.new(options.mandatory)
          end

          # With less than a batch on its way at once, a failure has to be known before the next is sent: what
          # follows it must not overtake it.
          #
          # @return [Integer] how many records are handed over together
          def at_once
            one_by_one = @options.ordering == :strict || @options.in_flight == 1
            one_by_one ? @options.in_flight : @options.batch
          end

          # @param records [Array<OutboxRecord>]
          # @param outcomes [Outcomes] told of each record
          # @param send_by [Float] seconds from now after which nothing more may be written
          # @yield between two slices of waiting
          # @yieldparam ticket [#send_by] of what is on its way
          # @yieldreturn [Symbol, nil] :cancel to stop waiting
          def publish(records, outcomes, send_by:, &between)
            records, messages = renderable(records, outcomes)
            ticket = submit(messages, send_by) unless records.empty?
          rescue StandardError => e
            records.each { |record| outcomes.note(record, Blame.of_outcome(e, record)) }
          else
            settle(ticket, records, outcomes, &between) if ticket
          end

          private

          # The application's own rule about what is mandatory may raise.
          def renderable(records, outcomes)
            records.each_with_object([[], []]) do |record, (sendable, messages)|
              messages << @wire.message(record)
              sendable << record
            rescue StandardError => e
              outcomes.note(record, Failure.new(error: e, scope: :record, permanent: false, record: record))
            end
          end

          def submit(messages, send_by)
            @transport.submit(messages, in_flight: @options.in_flight, in_flight_bytes: @options.in_flight_bytes,
                                        confirm_timeout: @options.confirm_timeout, send_by: send_by)
          end

          # Interrupted in its wait, it still learns what was confirmed until then: that has to be marked.
          def settle(ticket, records, outcomes)
            answers = nil
            @shutdown.watch(ticket) do
              until (answers = ticket.wait(SLICE))
                ticket.cancel if yield(ticket) == :cancel
              end
            end
          ensure
            note(records, answers || last_word(ticket), outcomes)
          end

          # @return [Array, nil]
          def last_word(ticket)
            ticket.cancel
            ticket.wait(LAST_WORD)
          end

          def note(records, answers, outcomes)
            return unless answers

            records.zip(answers) do |record, error|
              outcomes.note(record, error ? Blame.of_outcome(error, record) : Outcomes::CONFIRMED)
            end
          end
        end
      end
    end
  end
end
