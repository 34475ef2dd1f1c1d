# frozen_string_literal: true

# A consumer in a process of its own, from the first line of its input until the input's end: an idempotent handler that
# writes one row per message, and may die by SIGKILL in the middle of it. What it has to say goes to its output, a line of JSON each. Settings come as JSON in CHAOS:
#
#   database, url, queue  where
#   name                  what the rows say of it
#   store                 "claim", or "first_time" for one that answers only that
#   claim_timeout         seconds
#   concurrency           handlers at a time
#   stall                 seconds that a handler stands still in the middle
#   mortality             probability of dying at each of the handler's four places

require "active_record"
require "acemq_native"
require "json"

settings = JSON.parse(ENV.fetch("CHAOS"), symbolize_names: true)
output = Mutex.new

say = lambda do |event, **facts|
  output.synchronize { $stdout.syswrite("#{JSON.generate(event: event, **facts)}\n") }
end

die_here = ->(place) { say.call("died", place: place) && Process.kill(:KILL, Process.pid) && sleep if rand < settings[:mortality] }

# What `first_time?` alone can say.
class OnlyFirstTime
  def initialize(store)
    @store = store
  end

  def first_time?(key)
    @store.first_time?(key)
  end

  def forget(key)
    @store.forget(key)
  end
end

ActiveRecord::Base.establish_connection(settings[:database].merge(pool: 20))
claiming = AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: settings[:claim_timeout])
store = settings[:store] == "first_time" ? OnlyFirstTime.new(claiming) : claiming

once = AceMQ::AMQP::Patterns.idempotent(store, in_progress_delay: 0.25) do |message|
  say.call("begun", id: message.id, attempt: message.attempt)
  die_here.call("begun")
  sleep settings[:stall]
  ActiveRecord::Base.transaction do
    ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('#{message.id}')")
    die_here.call("worked")
    claiming.confirm(message.id) if settings[:store] == "claim"
    die_here.call("confirmed")
  end
  die_here.call("committed")
  AceMQ::AMQP::Ack.accept
end

ActiveRecord::Base.connection_pool.with_connection { claiming.check! }
say.call("booted")
$stdin.gets or exit
connection = AceMQ::AMQP::Connection.open(settings[:url], client_name: settings[:name])
connection.consume(settings[:queue], concurrency: settings[:concurrency], prefetch: settings[:concurrency] * 2) do |message|
  answer = ActiveRecord::Base.connection_pool.with_connection { once.call(message) }
  say.call("answered", id: message.id, attempt: message.attempt, answer: answer.action)
  answer
end
say.call("ready")

$stdin.read
connection.close(timeout: 5)
