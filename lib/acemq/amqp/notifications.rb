# frozen_string_literal: true

require_relative "log"

module AceMQ
  module AMQP
    # What happens, told to whoever has subscribed to it by ActiveSupport::Notifications. Without ActiveSupport, or
    # without a subscriber of that name, nothing is made and nothing is measured.
    #
    # | event | payload besides `exception` |
    # |---|---|
    # | `add.acemq` | `id`, `exchange`, `routing_key`, `bytes`, `outbox` (the table's name) |
    # | `sweep.acemq` | `claimed`, `published`, `retired` (Integers), `failures` (Array of exceptions): one round of a relay |
    # | `claim.acemq` | `limit`, `claimed`, `outbox` |
    # | `publish.acemq` | `records`, `confirmed` (Arrays of {Patterns::OutboxRecord}), `failures` (Array of exceptions), `outbox` |
    # | `mark.acemq` | `marked`, `failed`, `held`, `unsent`, `retired` (Integers), `outbox` |
    # | `retire.acemq` | `id`, `exchange`, `routing_key`, `reason`, `outbox` |
    # | `lease_lost.acemq` | `rows`, `outbox` |
    # | `blocked.acemq` | `reason` |
    # | `reconnect.acemq` | |
    # | `handle.acemq` | `queue`, `id`, `type`, `attempt`, `outcome` |
    # | `duplicate.acemq` | `key` |
    # | `idempotency.acemq` | `outcome` (Symbol, see {Patterns::HitRate}), `key`, `store` (its class's name) |
    module Notifications
      SUFFIX = ".acemq"

      class << self
        # @param event [Symbol]
        # @param payload [Hash]
        # @yieldparam payload [Hash, nil] to be added to; nil when nobody listens
        # @return [Object] the block's
        def around(event, **payload)
          name = name_of(event)
          return yield(nil) unless listening?(name)

          guarded(name) { |run| ::ActiveSupport::Notifications.instrument(name, payload) { |kept| run.call { yield kept } } }
        end

        # @param event [Symbol]
        # @param payload [Hash]
        # @return [nil]
        def tell(event, **payload)
          name = name_of(event)
          guarded(name) { ::ActiveSupport::Notifications.instrument(name, payload) } if listening?(name)
          nil
        end

        private

        # What a subscriber raises is its own, and must neither end a relay nor roll a transaction back.
        def guarded(name)
          answer = failure = nil
          yield(lambda do |&work|
            answer = work.call
          rescue Exception => e # rubocop:disable Lint/RescueException -- raised again below, whatever a subscriber makes of it
            failure = e
            raise
          end)
          answer
        rescue StandardError => e
          raise failure if failure

          Log.error("a subscriber of #{name} raised #{e.class}: #{e.message}")
          answer
        end

        def name_of(event)
          NAMES.fetch(event)
        end

        def listening?(name)
          defined?(::ActiveSupport::Notifications) && ::ActiveSupport::Notifications.notifier.listening?(name)
        end
      end

      NAMES = %i[add sweep claim publish mark retire lease_lost blocked reconnect handle duplicate idempotency]
              .to_h { |event| [event, "#{event}#{SUFFIX}"] }.freeze
    end
  end
end
