# frozen_string_literal: true

url = Docs.postgres
store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
STORE = store
message = AceMQ::AMQP::Message.new(payload: { "order_id" => 1 }, envelope: AceMQ::AMQP::Envelope.new)
key = "charge:1"
account_id = 7
Object.define_method(:import) { |_message| nil }
Object.define_method(:book) { |_message| nil }
