# frozen_string_literal: true

ids = ["one"]
relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new)
