# frozen_string_literal: true

# The same application, whose initializer has started a relay.
require_relative "relay_application"

store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(table: ENV.fetch("ACEMQ_SPEC_TABLE", "acemq_outbox"))
AceMQ::Rails::Relays.keep(AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store, interval: 0.1))
