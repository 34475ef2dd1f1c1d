# frozen_string_literal: true

require_relative "../../notifications"
require_relative "../../tracing"
require_relative "outcomes"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # What a relay tells of, as {Notifications} lists it.
        module Instrument
          class << self
            # @yieldreturn [Result]
            def round
              Notifications.around(:sweep) do |payload|
                yield.tap do |result|
                  payload&.update(claimed: result.claimed, published: result.published, retired: result.retired.size,
                                  failures: result.failures.map(&:error))
                end
              end
            end

            # @yieldreturn [Array<OutboxRecord>] or what answers `records`
            def claim(store, limit)
              Notifications.around(:claim, limit: limit, outbox: name_of(store)) do |payload|
                yield.tap { |taken| payload[:claimed] = (taken.respond_to?(:records) ? taken.records : taken).size if payload }
              end
            end

            # @param outcomes [Outcomes] told by the block
            def publish(store, records, outcomes, &publishing)
              Notifications.around(:publish, records: records, outbox: name_of(store)) do |payload|
                Tracing.publishing(records, &publishing).tap { payload&.update(results(records, outcomes)) }
              end
            end

            # @param lists [Verdicts::Lists]
            # @yieldreturn [Settlement]
            def mark(store, lists)
              name = name_of(store)
              settled = Notifications.around(:mark, marked: lists.confirmed.size, failed: lists.failed.size, held: lists.held.size,
                                                    unsent: lists.unsent.size, outbox: name) do |payload|
                yield.tap { |settlement| payload[:retired] = settlement.retired.size if payload }
              end
              lost = settled.respond_to?(:lost) ? settled.lost : 0
              Notifications.tell(:lease_lost, rows: lost, outbox: name) if lost.positive?
              settled
            end

            # For stores that are told of each record by itself.
            def mark_one(store, &mark)
              Notifications.around(:mark, marked: 1, failed: 0, held: 0, unsent: 0, retired: 0, outbox: name_of(store), &mark)
            end

            # @param failure [Failure] of a record that will not be tried again
            def retire(store, failure)
              Notifications.tell(:retire, id: failure.record.id, exchange: failure.exchange, routing_key: failure.routing_key,
                                          reason: failure.reason, outbox: name_of(store))
            end

            # @param reason [String, nil] the broker's
            def blocked(reason)
              Notifications.tell(:blocked, reason: reason)
            end

            def reconnect
              Notifications.tell(:reconnect)
            end

            private

            def name_of(store)
              return store.label if store.respond_to?(:label)

              store.respond_to?(:table) ? store.table : store.class.name
            end

            def results(records, outcomes)
              { confirmed: records.select { |record| outcomes.of(record) == Outcomes::CONFIRMED },
                failures: records.map { |record| outcomes.of(record) }.grep(Failure).map(&:error) }
            end
          end
        end
      end
    end
  end
end
