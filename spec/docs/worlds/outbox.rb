# frozen_string_literal: true

ids = ["one"]
relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new)
url = Docs.postgres
conn = PG.connect(url)
conn.exec("CREATE TABLE orders (name text)")
name = "one"
record = AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, {}, to: "order.placed", exchange: "shop")
