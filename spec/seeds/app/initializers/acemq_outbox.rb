require "acemq/amqp/patterns"

if $PROGRAM_NAME.end_with?("acemq-consumer")
  Rails.application.config.after_initialize do
    relay = AceMQ::AMQP::Patterns::OutboxRelay.new(
      AceMQ::Rails.connection, ActiveRecordOutboxStore.new,
      interval: 1, batch: 100,
      on_error: lambda { |error, exchange:, routing_key:|
        Rails.error.report(error, context: { outbox: exchange, routing_key: routing_key })
      }
    ).start

    at_exit { relay.close }
  end
end
