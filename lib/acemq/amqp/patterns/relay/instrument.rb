# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # `sweep.acemq` for every round, where ActiveSupport::Notifications is there.
        #
        # Payload: `:claimed`, `:published` and `:retired` (Integers), `:failures` (Array of exceptions).
        module Instrument
          NAME = "sweep.acemq"

          # @yieldreturn [Result]
          def self.round
            return yield unless defined?(::ActiveSupport::Notifications)

            ::ActiveSupport::Notifications.instrument(NAME, {}) do |payload|
              yield.tap do |result|
                payload.update(claimed: result.claimed, published: result.published, retired: result.retired.size,
                               failures: result.failures.map(&:error))
              end
            end
          end
        end
      end
    end
  end
end
