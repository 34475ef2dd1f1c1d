# frozen_string_literal: true

# Messages per second out of a durable queue, each acknowledged, in one run:
#
#   bunny                  `subscribe(manual_ack: true)`, the body parsed as JSON, one ack each
#   a native subscription  the same over AceMQ::AMQP::Transport#subscribe
#   a consumer             AceMQ::AMQP::Connection#consume: envelope, codec, retry policy, settling
#
# each with a handler that does nothing and with one that takes 1 ms, at concurrency 1 and 10.
#
#   ruby benchmarks/consume.rb       starts a RabbitMQ of its own; ACEMQ_TEST_AMQP_URL names another
#   ROUNDS=3 MESSAGES=20000 SLOW_MESSAGES=3000 PREFETCH=100 BODY=256
#
# The rivals take turns, round after round; the figure is the median. Build with `rake compile:release` first.

require "bunny"
require "json"
require "logger"
require_relative "support"

ROUNDS = Benchmarks.number("ROUNDS", 3)
MESSAGES = Benchmarks.number("MESSAGES", 20_000)
SLOW_MESSAGES = Benchmarks.number("SLOW_MESSAGES", 3_000)
PREFETCH = Benchmarks.number("PREFETCH", 100)
BODY = Benchmarks.number("BODY", 256)
QUEUE = "acemq.benchmark.consume"

URL = AceMQ::TestServers.rabbitmq.url
CONNECTION = AceMQ::AMQP::Connection.open(URL)
PAYLOADS = Array.new(1000) { |i| { "order" => i, "text" => "x" * (BODY - 20) } }

# Counts down from any thread.
class Countdown
  def initialize(count)
    @left = count
    @mutex = Mutex.new
    @done = ConditionVariable.new
  end

  def tick
    @mutex.synchronize { (@left -= 1).zero? && @done.signal }
  end

  def wait
    @mutex.synchronize { @done.wait(@mutex, 1) while @left.positive? }
  end
end

def fill(count)
  CONNECTION.delete_queue(QUEUE)
  CONNECTION.declare_queue(QUEUE, queue_type: :classic)
  (count / PAYLOADS.size).times { CONNECTION.publish_all(PAYLOADS, to: QUEUE) }
  sleep(0.05) until CONNECTION.message_count(QUEUE) == count
end

def bunny(countdown, concurrency, work)
  session = Bunny.new(URL, logger: Logger.new(File::NULL)).start
  channel = session.create_channel(nil, concurrency)
  channel.prefetch(PREFETCH)
  channel.queue(QUEUE, durable: true).subscribe(manual_ack: true) do |delivery, _properties, body|
    work.call(JSON.parse(body))
    channel.ack(delivery.delivery_tag)
    countdown.tick
  end
  countdown.wait
  session.close
end

def subscription(countdown, concurrency, work)
  connection = AceMQ::AMQP::Connection.open(URL)
  connection.transport.subscribe(QUEUE, prefetch: PREFETCH, concurrency: concurrency, tag: "benchmark") do |delivery|
    work.call(JSON.parse(delivery.body))
    delivery.ack
    countdown.tick
  end
  countdown.wait
  connection.close
end

def consumer(countdown, concurrency, work)
  connection = AceMQ::AMQP::Connection.open(URL)
  accept = AceMQ::AMQP::Ack.accept
  connection.consume(QUEUE, prefetch: PREFETCH, concurrency: concurrency) do |message|
    work.call(message.payload)
    countdown.tick
    accept
  end
  countdown.wait
  connection.close
end

RIVALS = { "bunny" => :bunny, "a native subscription" => :subscription, "a consumer" => :consumer }.freeze

def rate(rival, count, concurrency, work)
  fill(count)
  countdown = Countdown.new(count)
  (count / Benchmarks.seconds { send(rival, countdown, concurrency, work) }).tap do
    left = CONNECTION.message_count(QUEUE)
    abort("#{rival} left #{left} messages in the queue") unless left.zero?
  end
end

nothing = ->(_payload) {}
one_ms = ->(_payload) { sleep(0.001) }

[["nothing", nothing, MESSAGES], ["1 ms", one_ms, SLOW_MESSAGES]].each do |title, work, count|
  [1, 10].each do |concurrency|
    rates = Hash.new { |all, name| all[name] = [] }
    ROUNDS.times { RIVALS.each { |name, rival| rates[name] << rate(rival, count, concurrency, work) } }
    Benchmarks.report("a handler that takes #{title}, concurrency #{concurrency}", "messages/s",
                      rates.transform_values { |each| Benchmarks.median(each) })
  end
end

CONNECTION.delete_queue(QUEUE)
CONNECTION.close
