# frozen_string_literal: true

# A handler that is called three times with one message and does the work once. Needs no broker.
#
#   ruby -Ilib examples/idempotent_handler.rb

require "acemq_native"
require "active_record"

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Base.connection.create_table(:charges) { |t| t.string :order_id }
AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.create_table(ActiveRecord::Base.connection)

class Charge < ActiveRecord::Base
end

store = AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new

# The key is the business event, not the message: a second message about the same order charges nothing either.
key = ->(message) { "charge:#{message.payload["order_id"]}" }

handler = AceMQ::AMQP::Patterns.idempotent(store, key: key) do |message|
  Charge.transaction do
    Charge.create!(order_id: message.payload["order_id"])
    store.confirm(key.call(message)) # together with the work, or not at all
  end
  AceMQ::AMQP::Ack.accept
end

message = AceMQ::AMQP::Message.new(payload: { "order_id" => "A-1" },
                                   envelope: AceMQ::AMQP::Envelope.new(type: "payment.due.v1"))
3.times { puts "the handler answers: #{handler.call(message)}" }
puts "charges: #{Charge.count}"
