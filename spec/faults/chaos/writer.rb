# frozen_string_literal: true

# Writers in a process of their own: transactions that do a piece of work and announce it, some of which roll back.
# Takes orders as lines of JSON on its input, `{"write": {"lanes": [...], "seed": 7, "pace": 0.03}}`, `{"pause": true}` and
# `{"halt": true}`, and tells on its output what was committed. Settings come as JSON in CHAOS: `database`, `threads`.

require "active_record"
require "acemq_native"
require "json"

# One thread of transactions. A lane has one writer, so that its numbers rise in the order of its commits.
class Writer
  CHANGE_OF_MIND = 0.15 # transactions that roll back
  SAVEPOINT = 0.1 # those with a part that does
  LONG = 0.01 # messages that do not fit in one packet
  LONG_BODY = 60_000 # bytes

  STORE = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
  # Records need a codec and an origin, no broker.
  RECORDER = AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:1", origin: "chaos@here")

  attr_reader :failures
  attr_writer :paused

  def initialize(lanes, random, pace, say)
    @lanes = lanes
    @random = random
    @pace = pace
    @say = say
    @numbers = Hash.new(0)
    @failures = 0
  end

  def run
    until @halted
      write unless @paused
      sleep(@pace * @random.rand(0.5..1.5))
    end
    ActiveRecord::Base.connection_handler.clear_active_connections!
  end

  def halt
    @halted = true
  end

  private

  def write
    written = []
    rolled_back = @random.rand < CHANGE_OF_MIND
    ActiveRecord::Base.transaction do
      @random.rand(1..6).times { written << piece }
      in_vain if @random.rand < SAVEPOINT
      raise ActiveRecord::Rollback if rolled_back
    end
    @say.call(committed: written) unless rolled_back
  rescue ActiveRecord::ActiveRecordError, AceMQ::AMQP::ConfigurationError
    # Committed or not: the tables will tell.
    @failures += 1
    let_go
    sleep 0.1
  end

  def piece
    exchange, routing_key = lane = @lanes.sample(random: @random)
    n = @numbers[lane] += 1
    body = { n: n, filler: @random.rand < LONG ? "x" * LONG_BODY : "" }
    record = AceMQ::AMQP::Patterns.record(RECORDER, body, to: routing_key, exchange: exchange)
    db = ActiveRecord::Base.connection
    db.execute("INSERT INTO chaos_work (id, exchange_name, routing_key, n) " \
               "VALUES (#{[record.id, exchange, routing_key].map { |value| db.quote(value) }.join(", ")}, #{n})")
    STORE.add(record)
    record.id
  end

  def in_vain
    ActiveRecord::Base.transaction(requires_new: true) do
      piece
      raise ActiveRecord::Rollback
    end
  end

  # A session may be dead, or alive and read-only for ever.
  def let_go
    connection = ActiveRecord::Base.connection
    ActiveRecord::Base.connection_pool.remove(connection)
    connection.disconnect!
  rescue ActiveRecord::ActiveRecordError
    nil
  end
end

settings = JSON.parse(ENV.fetch("CHAOS"), symbolize_names: true)
ActiveRecord::Base.establish_connection(settings[:database])

lock = Mutex.new
say = lambda do |**facts|
  lock.synchronize do
    $stdout.write("#{JSON.generate(facts)}\n")
    $stdout.flush
  end
end

writers = []
threads = []
$stdin.each_line do |line|
  order = JSON.parse(line, symbolize_names: true)
  if (job = order[:write])
    writers = Array.new(settings[:threads]) do |i|
      lanes = job[:lanes].select.with_index { |_, index| index % settings[:threads] == i }
      Writer.new(lanes, Random.new(job[:seed] + i), job[:pace], say)
    end
    threads = writers.map { |writer| Thread.new { writer.run } }
  elsif order.key?(:pause)
    writers.each { |writer| writer.paused = order[:pause] }
  else
    writers.each(&:halt)
    threads.each(&:join)
    ActiveRecord::Base.connection_pool.disconnect! # SQLite changes its journal only when nobody is connected
    say.call(halted: true, failures: writers.sum(&:failures))
  end
end
