# frozen_string_literal: true

require "acemq_native"
require "active_record"

# The application: orders, and the messages that tell the warehouse about them.
module Shop
  EXCHANGE = "acemq-demo-shop"
  QUEUE = "acemq-demo-warehouse"
  REGIONS = %w[asia europe america].freeze
  TABLES = %w[demo_orders demo_shipments acemq_outbox acemq_idempotency].freeze

  # Short, so that the demo need not wait long for what the killed relay held; the default is 30 seconds.
  LEASE = 5
  OUTBOX = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: LEASE)
  HANDLED = AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new

  OutOfStock = Class.new(StandardError)

  class Order < ActiveRecord::Base
    self.table_name = "demo_orders"

    # The order and its message are committed together, or neither is.
    def self.place!(connection, number:, in_stock: true)
      transaction do
        order = create!(number: number, region: REGIONS[number % REGIONS.size])
        OUTBOX.add(
          AceMQ::AMQP::Patterns.record(
            connection, { number: order.number, region: order.region },
            to: "order.placed.#{order.region}", exchange: EXCHANGE, type: "order.placed.v1"
          )
        )
        raise OutOfStock unless in_stock

        order
      end
    end
  end

  # The effect of a message. No unique index: an order that is handled twice is shipped twice, and the demo would see it.
  class Shipment < ActiveRecord::Base
    self.table_name = "demo_shipments"
  end

  # The warehouse's handler. The shipment and "this message is done" are committed together.
  def self.handler
    AceMQ::AMQP::Patterns.idempotent(HANDLED) do |message|
      Shipment.transaction do
        Shipment.create!(order_number: message.payload.fetch("number"))
        HANDLED.confirm(message.id)
      end
      AceMQ::AMQP::Ack.accept
    end
  end

  # What two migrations do in an application.
  def self.create_tables
    database = ActiveRecord::Base.connection
    database.create_table(:demo_orders) do |t|
      t.integer :number, null: false, index: { unique: true }
      t.string :region, null: false
    end
    database.create_table(:demo_shipments) { |t| t.integer :order_number, null: false }
    OUTBOX.class.create_table(database)
    HANDLED.class.create_table(database)
  end

  def self.drop_tables
    TABLES.each { |table| ActiveRecord::Base.connection.drop_table(table, if_exists: true) }
  end

  def self.declare_topology(connection)
    connection.declare_exchange(EXCHANGE, kind: :topic, auto_delete: true) # goes with the queue
    # Quorum queues are the default; this one is read message by message, which they write to disk one by one.
    connection.declare_queue(QUEUE, queue_type: :classic)
    connection.bind(queue: QUEUE, exchange: EXCHANGE, routing_key: "order.placed.#")
  end
end
