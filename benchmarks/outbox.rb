# frozen_string_literal: true

require "active_record"
require_relative "support"

# An outbox in one of the databases, filled by single statements, an exchange and a queue, for benchmarks that ask what
# is in the way of a claim.
class Outbox
  STORE = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
  NAME = "acemq.benchmark"

  # @return [Hash] for establish_connection
  attr_reader :config

  # @param database [String] postgres or mariadb
  def initialize(database)
    @postgres = database == "postgres"
    @config = AceMQ::TestServers.public_send(database).config
    ActiveRecord::Base.establish_connection(@config)
    ActiveRecord::Base.logger = nil
    # A queue with a million messages takes a while to be deleted.
    @connection = AceMQ::AMQP::Connection.open(AceMQ::TestServers.rabbitmq.url, confirm_timeout: 300)
    @connection.declare_exchange(NAME, kind: "topic")
  end

  # Gives a MariaDB of ours so much room for tables, and as much for its log, without which it writes the tables all the
  # while; PostgreSQL uses the machine's cache besides its own.
  # @param mebibytes [Integer]
  def memory(mebibytes)
    return if @postgres || !AceMQ::TestServers.mariadb.ours?

    %w[buffer_pool_size log_file_size].each { |name| db.execute("SET GLOBAL innodb_#{name} = #{mebibytes * 1024 * 1024}") }
  end

  # An empty table, and an empty queue for every routing key that begins with "bound.".
  def clear
    db.drop_table(:acemq_outbox, if_exists: true)
    STORE.create_table(db)
    @connection.delete_queue(NAME)
    @connection.declare_queue(NAME, queue_type: :classic)
    @connection.bind(queue: NAME, exchange: NAME, routing_key: "bound.*")
  end

  # @param count [Integer] rows, by turns for so many destinations
  # @param prefix [String] of their routing keys
  # @param ids [String] what their ids begin with
  # @param age [Integer] seconds since they were written
  def fill(count, prefix, destinations: 1, ids: prefix, age: 0)
    n, source = @postgres ? ["n", "generate_series(1, #{count}) n"] : ["seq", "seq_1_to_#{count}"]
    db.execute(<<~SQL)
      INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at)
      SELECT CONCAT('#{ids}-', #{n}), '#{NAME}', CONCAT('#{prefix}.', MOD(#{n}, #{destinations})), '#{"x" * 200}', 'utf-8',
             'text/plain', '{}', #{written(n, age)} FROM #{source}
    SQL
  end

  def analyze
    db.execute(@postgres ? "VACUUM ANALYZE acemq_outbox" : "ANALYZE TABLE acemq_outbox")
  end

  # Waits until no other session keeps one: a vacuum would leave everything.
  def forget_snapshots
    return unless @postgres

    others = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"
    sleep 0.05 until db.select_value(others).zero?
  end

  # @return [Integer] messages that have arrived
  def arrived
    @connection.message_count(NAME)
  end

  # Waits for so many.
  # @return [Integer] messages that have arrived
  def arrived_of(count)
    loop do
      found = arrived
      return found if found >= count

      sleep 0.02
    end
  end

  # Runs the block beside relays in processes of their own.
  def with_relays(count, **options)
    pids = Array.new(count) { relay(options) }
    yield
  ensure
    Process.kill(:TERM, *pids)
    pids.each { |pid| Process.wait(pid) }
  end

  def close
    @connection.delete_queue(NAME)
    @connection.close
    ActiveRecord::Base.remove_connection
  end

  def db
    ActiveRecord::Base.connection
  end

  private

  def written(number, age)
    return "(now() AT TIME ZONE 'UTC') - INTERVAL '#{age} seconds' + #{number} * INTERVAL '1 microsecond'" if @postgres

    "UTC_TIMESTAMP(6) - INTERVAL #{age} SECOND + INTERVAL #{number} MICROSECOND"
  end

  # @return [Integer] process id of a relay that is connected
  def relay(options)
    reader, writer = IO.pipe
    pid = fork do
      stop = Thread::Queue.new
      Signal.trap("TERM") { stop << true }
      ActiveRecord::Base.establish_connection(@config)
      connection = AceMQ::AMQP::Connection.open(AceMQ::TestServers.rabbitmq.url)
      AceMQ::AMQP::Patterns::OutboxRelay.new(connection, STORE.new, interval: 0.05, on_error: ->(_) {}, **options).start
      writer.write(".")
      stop.pop
      connection.close
      exit!(0)
    end
    writer.close
    reader.read(1)
    pid
  end
end
