# frozen_string_literal: true

require_relative "family"

module AceMQ
  class Metrics
    # What is read from the tables and the relays at the moment of asking.
    #
    # | gauge | labels |
    # |---|---|
    # | `acemq_outbox_up` 1 when its database answered | outbox |
    # | `acemq_outbox_pending`, `acemq_outbox_oldest_pending_seconds` | outbox |
    # | `acemq_outbox_held_destinations`, `acemq_outbox_retired`, `acemq_outbox_leased` | outbox |
    # | `acemq_relay_state` 1 for the state that it is in | relay, state |
    # | `acemq_relay_connected` 1 while it has a link to the broker | relay |
    class Gauges
      STATES = %i[idle publishing blocked down paused closed].freeze

      def initialize
        @up = gauge("acemq_outbox_up", "Whether the outbox's database answers")
        @pending = gauge("acemq_outbox_pending", "Records still to be published")
        @oldest = gauge("acemq_outbox_oldest_pending_seconds", "Age of the oldest record still to be published, 0 without one")
        @held = gauge("acemq_outbox_held_destinations", "Destinations that wait after a failure")
        @retired = gauge("acemq_outbox_retired", "Records that will not be tried again")
        @leased = gauge("acemq_outbox_leased", "Records that a relay holds")
        @state = gauge("acemq_relay_state", "The state of a relay")
        @connected = gauge("acemq_relay_connected", "Whether a relay has a link to the broker")
      end

      # @param name [String]
      # @param up [Boolean] whether its database answers
      # @param status [Operations::Status, nil] nil where there is none yet
      def outbox(name, up:, status:)
        @up.set(up ? 1 : 0, outbox: name)
        return unless status

        @pending.set(status.pending, outbox: name)
        @oldest.set(status.oldest.to_f.round(3), outbox: name)
        @held.set(status.held.size, outbox: name)
        @retired.set(status.retired, outbox: name)
        @leased.set(status.leases.sum(&:rows), outbox: name)
      end

      # @param name [String]
      # @param relay [AMQP::Patterns::OutboxRelay]
      def relay(name, relay)
        now = relay.state.name
        STATES.each { |state| @state.set(state == now ? 1 : 0, relay: name, state: state) }
        @connected.set(relay.connected? ? 1 : 0, relay: name)
      end

      # @return [String] in Prometheus' text format
      def to_prometheus
        @families.join
      end

      private

      def gauge(name, help)
        Family.new(name, help, :gauge).tap { |family| (@families ||= []) << family }
      end
    end
  end
end
