# frozen_string_literal: true

# The outbox in one file: two orders, one of them rolled back, one message.
#
#   ACEMQ_URL=amqp://guest:guest@localhost ruby -Ilib examples/outbox.rb

require "acemq_native"
require "active_record"

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Base.connection.create_table(:orders) { |t| t.string :number }
AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.create_table(ActiveRecord::Base.connection)

class Order < ActiveRecord::Base
end

connection = AceMQ::AMQP::Connection.open(ENV.fetch("ACEMQ_URL", "amqp://guest:guest@localhost"))
queue = connection.declare_queue("acemq-example-orders", queue_type: :classic)
outbox = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new

%w[A-1 A-2].each do |number|
  Order.transaction do
    order = Order.create!(number: number)
    outbox.add(AceMQ::AMQP::Patterns.record(connection, { number: order.number }, to: queue, type: "order.placed.v1"))
    raise ActiveRecord::Rollback if number == "A-2" # out of stock
  end
end

# In an application: `.start`, in a process of its own.
relay = AceMQ::AMQP::Patterns::OutboxRelay.new(connection, outbox)
puts "published: #{relay.sweep}"

while (delivery = connection.pull(queue))
  puts "in the queue: #{delivery.body}"
  delivery.ack
end

connection.delete_queue(queue)
connection.close
