# frozen_string_literal: true

require "active_job"
require_relative "../operations"

module AceMQ
  module Rails
    # A relay for applications that would rather run a job every few seconds than one more process: publishes what is
    # there and ends. Runs beside each other, and beside a relay of its own process, share the work by their leases.
    #
    # Fails, after everything else was published, with what could not be.
    #
    # @example config/recurring.yml of Solid Queue
    #   outbox_relay:
    #     class: AceMQ::Rails::OutboxRelayJob
    #     schedule: every 5 seconds
    # @example on a queue of its own, over an outbox of its own
    #   class OutboxRelayJob < AceMQ::Rails::OutboxRelayJob
    #     queue_as :outbox
    #
    #     def store
    #       AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(model: Order)
    #     end
    #   end
    class OutboxRelayJob < ::ActiveJob::Base
      # Seconds after which it leaves the rest to the next run.
      SECONDS = 50

      # @param seconds [Numeric]
      # @param batch [Integer] rows of a claim
      # @return [Integer] rows published
      # @raise [AMQP::TransportError] the first that stood in the way
      def perform(seconds: SECONDS, batch: AMQP::Patterns::OutboxRelay::DEFAULT_BATCH)
        relay = AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store, batch: batch)
        Operations::Turn.new(relay, seconds).run
      end

      # @return [#add, #pending] the outbox to publish
      def store
        AMQP::Patterns::ActiveRecordOutboxStore.new
      end
    end
  end
end
