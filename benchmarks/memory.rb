# frozen_string_literal: true

# Resident memory of a process that publishes a million messages, and how much of it came after the first hundred
# thousand.
#
#   ruby benchmarks/memory.rb       starts a RabbitMQ of its own
#   MESSAGES=1000000 BODY=256

require_relative "support"

MESSAGES = Benchmarks.number("MESSAGES", 1_000_000)
BODY = Benchmarks.number("BODY", 256)
BATCH = 500
QUEUE = "acemq.memory"

connection = AceMQ::AMQP::Connection.open(AceMQ::TestServers.rabbitmq.url)
# A queue that keeps only the last message: it is our memory that is measured.
connection.declare_queue(QUEUE, queue_type: :classic, arguments: { "x-max-length" => 1 })
message = { exchange: "", routing_key: QUEUE, body: "x" * BODY, content_type: "text/plain", mandatory: true,
            headers: { "x-acemq-attempt" => 1, "x-acemq-type" => "benchmark" } }

readings = {}
(1..(MESSAGES / BATCH)).each do |batch|
  failed = connection.transport.publish_all(Array.new(BATCH) { message }).grep(Exception)
  raise failed.first if failed.any?

  sent = batch * BATCH
  next unless sent == 100_000 || (sent % (MESSAGES / 10)).zero?

  GC.start
  readings[sent] = Benchmarks.resident
  puts format("%9d messages   %6.1f MiB", sent, readings[sent])
end
first = readings.fetch(100_000) { readings.values.first }
puts format("grown by %.1f MiB from %d to %d messages", readings.values.last - first, readings.key(first), readings.keys.last)
connection.delete_queue(QUEUE)
connection.close
