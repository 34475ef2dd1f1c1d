# frozen_string_literal: true

require "acemq_native"
require "active_record"
require "irb"
require_relative "../../spec/support/servers"

# What the prompt offers by name.
module Playground
  include AceMQ::AMQP

  # @return [AceMQ::AMQP::Connection] to ACEMQ_URL, else to a broker started for this session
  def connection
    Playground.connection
  end

  def store
    Playground.store
  end

  def relay
    Playground.relay
  end

  class << self
    def connection
      @connection ||= AceMQ::AMQP::Connection.open(ENV["ACEMQ_URL"] || AceMQ::TestServers.rabbitmq.url)
    end

    def store
      @store ||= AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
    end

    def relay
      @relay ||= AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store)
    end

    def connect_database
      return ActiveRecord::Base.establish_connection(ENV["DATABASE_URL"]) if ENV["DATABASE_URL"]

      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
      AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.create_table(ActiveRecord::Base.connection)
      AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.create_table(ActiveRecord::Base.connection)
    end
  end
end

Playground.connect_database
puts <<~TEXT
  connection   #{Playground.connection.transport.class}, #{ENV["ACEMQ_URL"] ? "ACEMQ_URL" : "a broker of this session"}
  store        the outbox, in #{ActiveRecord::Base.connection.adapter_name}
  relay        relay.sweep publishes what the outbox holds

  connection.declare_queue("orders")
  store.add(Patterns.record(connection, { number: 1 }, to: "orders"))
  relay.sweep
  connection.pull("orders").tap(&:ack)
TEXT

include Playground # rubocop:disable Style/MixinUsage -- the prompt is at the top level
ARGV.clear
IRB.start
