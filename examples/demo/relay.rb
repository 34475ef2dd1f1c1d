# frozen_string_literal: true

# The relay, a process of its own: publishes what the outbox holds until it is told to stop.
require_relative "places"
require_relative "shop"

places = Places.from_environment
places.connect_database
connection = AceMQ::AMQP::Connection.open(places.broker_url, client_name: "demo relay")
relay = AceMQ::AMQP::Patterns::OutboxRelay.new(
  connection, Shop::OUTBOX, interval: 0.2, confirm_timeout: Shop::LEASE - 1,
                            on_error: ->(error) { warn "relay: #{error.message} (#{error.class})" }
).start

stopping = Thread::Queue.new
%w[INT TERM].each { |signal| trap(signal) { stopping << signal } }
# The demo holds the other end: a demo that dies takes its relay along.
Thread.new { $stdin.read && stopping << "end of input" }
stopping.pop

relay.close
connection.close
