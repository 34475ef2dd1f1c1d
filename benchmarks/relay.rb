# frozen_string_literal: true

# Rows per second from a PostgreSQL outbox into a durable RabbitMQ queue, in one run:
#
#   the seed's own store and relay with bunny, one confirm per message
#   the same rows with bunny in batches of 500, one wait for all its confirms, one UPDATE
#   ActiveRecordOutboxStore and OutboxRelay at batch 100 and 500
#   lapin alone, without any database
#
#   ruby benchmarks/relay.rb         starts a RabbitMQ and a PostgreSQL of its own
#   ROUNDS=3 ROWS=20000 SLOW_ROWS=1000 BODY=256
#
# The rivals take turns, round after round; the figure is the median. `cargo build --release --example bare_pipeline`
# builds the last one; without it that line is left out.

require "active_record"
require "bunny"
require "json"
require "securerandom"
require_relative "support"
require_relative "../spec/seeds/application"

ROUNDS = Benchmarks.number("ROUNDS", 3)
ROWS = Benchmarks.number("ROWS", 20_000)
SLOW_ROWS = Benchmarks.number("SLOW_ROWS", 1_000)
BODY = Benchmarks.number("BODY", 256)
QUEUE = "acemq.benchmark"
PIPELINE = File.expand_path("../target/release/examples/bare_pipeline", __dir__)

broker = AceMQ::TestServers.rabbitmq
ActiveRecord::Base.establish_connection(AceMQ::TestServers.postgres.config)
ActiveRecord::Base.logger = nil
STORE = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
CONNECTION = AceMQ::AMQP::Connection.open(broker.url)
CONNECTION.declare_queue(QUEUE, queue_type: :classic)
SESSION = Bunny.new(broker.url, logger: Logger.new(File::NULL)).start

def sql(text)
  ActiveRecord::Base.connection.execute(text)
end

# A table as the rival would have made it, with its rows, and an empty queue.
def fill(rows)
  HandwrittenApplication.drop
  yield
  headers = JSON.generate("x-acemq-id" => "", "x-acemq-type" => "order.placed", "x-acemq-version" => 1, "x-acemq-attempt" => 1,
                          "x-acemq-correlation" => SecureRandom.uuid, "x-acemq-first-seen" => 1_767_323_045_678,
                          "x-acemq-origin" => "orders@host")
  sql(<<~SQL)
    INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at, attempts)
    SELECT gen_random_uuid()::text, '', '#{QUEUE}', '{"d":"#{"x" * (BODY - 8)}"}', 'utf-8', 'application/json', '#{headers}',
           now() + n * interval '1 microsecond', 0 FROM generate_series(1, #{rows}) n
  SQL
  sql("VACUUM ANALYZE acemq_outbox")
end

def timed(rows)
  CONNECTION.delete_queue(QUEUE)
  CONNECTION.declare_queue(QUEUE, queue_type: :classic)
  rate = rows / Benchmarks.seconds { yield }
  arrived = CONNECTION.message_count(QUEUE)
  raise "#{arrived} of #{rows} arrived" if arrived < rows

  rate
end

def seed_with_bunny(rows)
  fill(rows) { HandwrittenApplication.migrate }
  store = ::ActiveRecordOutboxStore.new
  channel = SESSION.create_channel.tap(&:confirm_select)
  exchange = channel.default_exchange
  timed(rows) do
    while (records = store.pending(100)).any?
      records.each do |record|
        exchange.publish(record.body, routing_key: record.routing_key, message_id: record.id, persistent: true,
                                      content_type: record.content_type, headers: record.headers, mandatory: true)
        raise "not confirmed" unless channel.wait_for_confirms

        store.mark_published(record.id)
      end
    end
  end
ensure
  channel.close
end

def bunny_in_batches(rows)
  fill(rows) { HandwrittenApplication.migrate }
  store = ::ActiveRecordOutboxStore.new
  channel = SESSION.create_channel.tap(&:confirm_select)
  exchange = channel.default_exchange
  timed(rows) do
    while (records = store.pending(500)).any?
      records.each do |record|
        exchange.publish(record.body, routing_key: record.routing_key, message_id: record.id, persistent: true,
                                      content_type: record.content_type, headers: record.headers, mandatory: true)
      end
      raise "not confirmed" unless channel.wait_for_confirms

      OutboxMessage.where(id: records.map(&:id))
                   .update_all(published_at: Time.now.utc, locked_by: nil, locked_until: nil)
    end
  end
ensure
  channel.close
end

def ours(rows, batch)
  fill(rows) { STORE.create_table(ActiveRecord::Base.connection) }
  relay = AceMQ::AMQP::Patterns::OutboxRelay.new(CONNECTION, STORE.new, batch: batch)
  timed(rows) do
    sent = 0
    sent += relay.sweep while sent < rows
  end
end

def bare_pipeline(url, rows)
  rate = nil
  timed(rows) { rate = Float(IO.popen([PIPELINE, url, QUEUE, rows.to_s, "500", BODY.to_s], &:read)) }
  rate
end

rivals = {
  "seed's store, bunny, a confirm each" => -> { seed_with_bunny(SLOW_ROWS) },
  "bunny in batches of 500" => -> { bunny_in_batches(ROWS) },
  "acemq_native, batch 100" => -> { ours(ROWS, 100) },
  "acemq_native, batch 500" => -> { ours(ROWS, 500) }
}
rivals["lapin alone, batches of 500"] = -> { bare_pipeline(broker.url, ROWS) } if File.exist?(PIPELINE)

rates = rivals.transform_values { [] }
ROUNDS.times do |round|
  rivals.each do |name, rival|
    rates[name] << rival.call
    warn format("round %d  %-36s %8d rows/s", round + 1, name, rates[name].last)
  end
end

Benchmarks.report("rows per second, #{BODY}-byte bodies, median of #{ROUNDS} rounds", "rows/s",
                  rates.transform_values { |values| Benchmarks.median(values) })
CONNECTION.delete_queue(QUEUE)
SESSION.close
CONNECTION.close
