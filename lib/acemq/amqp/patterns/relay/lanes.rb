# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # What has to wait for what. A failure shuts its lane: the destination, the whole table (`:strict`)
        # or the record alone (`:none`).
        class Lanes
          # @param ordering [Symbol] :destination, :strict or :none
          # @param on_retire [Symbol] :continue lets a lane flow on past a record that cannot be sent at all
          def initialize(ordering, on_retire)
            @ordering = ordering
            @on_retire = on_retire
            @shut = {}
          end

          # @return [Boolean] whether this record has to wait
          def shut?(record)
            @shut.key?(lane(record))
          end

          # @param failure [Failure]
          def note(record, failure)
            @shut[lane(record)] = true unless passes?(failure)
          end

          # A record that was passed over, or whose fate the connection took along: what follows it waits.
          def shut(record)
            @shut[lane(record)] = true
          end

          # What waits behind a record that has failed before is sent once that one is known to be taken. Sent along with
          # it, it would pass it if what was wrong is mended in between, a queue bound, say.
          #
          # @param records [Array<OutboxRecord>] in order
          # @return [Array(Array<OutboxRecord>, Array<OutboxRecord>)] what may be sent together, and what comes after it
          def before_and_behind_failed(records)
            failed = {}
            records.partition do |record|
              lane = lane(record)
              next false if failed[lane]

              failed[lane] = record.attempts.to_i.positive?
              true
            end
          end

          # @return [Boolean] whether nothing more may be sent
          def all_shut?
            @ordering == :strict && !@shut.empty?
          end

          private

          def passes?(failure)
            failure.scope == :record && failure.permanent && @ordering != :strict && @on_retire == :continue
          end

          def lane(record)
            case @ordering
            when :destination then [record.exchange, record.routing_key]
            when :strict then :table
            else record.id
            end
          end
        end
      end
    end
  end
end
