# frozen_string_literal: true

require_relative "failure"
require_relative "instrument"
require_relative "result"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Tells of each failure once, until it has passed: an outage of an hour is one report, not one a second.
        class Reporter
          RETIRED = "%<record>s is retired: it is not sent again until the store's retry!(%<id>s) (%<reason>s)"

          # @param callback [ErrorCallback]
          def initialize(callback)
            @callback = callback
            @told = {}
          end

          # @param result [Result] of the background thread
          def report(result)
            passed(result)
            retired = result.retired.map { |failure| failure.record.id }
            result.failures.each { |failure| tell(failure, result) unless retired.include?(failure.record&.id) }
            result.retired.each { |failure| @callback.call(retirement(failure)) }
          end

          # An alarm of the broker that is waited out in the middle of a batch, for hours perhaps.
          #
          # @param reason [String] the broker's
          def blocked(reason)
            result = Result.new.tap(&:blocked!)
            result.add_block(reason)
            tell(result.failures.first, result)
          end

          # Forgets what no longer fails, so that it is told anew when it fails again.
          #
          # @param result [Result] also that of a sweep, which raises instead of reporting
          def passed(result)
            result.confirmed.each { |record| @told.delete([record.exchange, record.routing_key]) }
            @told.delete(:store) unless result.failed(:store)
            @told.delete(:connection) if result.reached? && !result.failed(:connection)
          end

          private

          def tell(failure, result)
            subject, state = state_of(failure, result)
            return if @told[subject] == state

            @told[subject] = state
            Instrument.blocked(failure.reason) if state == :blocked
            @callback.call(failure)
          end

          def state_of(failure, result)
            case failure.scope
            when :store then %i[store down]
            when :connection then [:connection, result.blocked? ? :blocked : :down]
            when :destination then [destination(failure), :held]
            else [destination(failure), failure.record.id]
            end
          end

          def destination(failure)
            [failure.record.exchange, failure.record.routing_key]
          end

          def retirement(failure)
            record = failure.record
            text = format(RETIRED, record: record, id: record.id.inspect, reason: failure.reason)
            Failure.new(error: caused_by(failure.error, text, record), scope: :record, permanent: true, record: record)
          end

          # An exception gets its cause by being raised.
          def caused_by(cause, text, record)
            raise PublishError.new(text, scope: :record, permanent: true, exchange: record.exchange,
                                         routing_key: record.routing_key), cause: cause
          rescue PublishError => e
            e
          end
        end
      end
    end
  end
end
