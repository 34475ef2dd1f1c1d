# frozen_string_literal: true

# What a purge costs those who write meanwhile: 200,000 rows that were published long ago are removed by a process of
# its own while another adds without pause; before that it adds as long without a purge. Rows that are not published,
# or retired, must all be there afterwards.
#
#   ruby benchmarks/purge.rb                starts a PostgreSQL of its own
#   DATABASE=postgres                       or mariadb, sqlite
#   ROWS=200000 LIMIT=200                   LIMIT: milliseconds for an add at the 99th percentile; above it the run fails

require "active_record"
require "securerandom"
require "tmpdir"
require_relative "support"
require "acemq/operations"

ROWS = Benchmarks.number("ROWS", 200_000)
LIMIT = Benchmarks.number("LIMIT", 200)
DATABASE = ENV.fetch("DATABASE", "postgres")
TABLE = "acemq_outbox_purged"
STORE = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
QUIET = 10 # seconds without a purge
SPARED = 1_000 # rows of each kind that a purge must leave alone

def connect
  sqlite = { adapter: "sqlite3", database: File.join(Dir.tmpdir, "acemq-purge.sqlite3"), timeout: 5_000 }
  config = DATABASE == "sqlite" ? sqlite : AceMQ::TestServers.public_send(DATABASE).config
  ActiveRecord::Base.establish_connection(config.key?(:url) ? config[:url] : config)
  ActiveRecord::Base.connection
end

def long_ago
  case DATABASE
  when "postgres" then "now() - INTERVAL '30 days'"
  when "mariadb" then "UTC_TIMESTAMP(6) - INTERVAL 30 DAY"
  else "datetime('now', '-30 days')"
  end
end

# As fast as the database takes them: what they are is all that counts.
def fill(connection, count, prefix, published_at, attempts)
  count.times.each_slice(2_000) do |slice|
    values = slice.map do |n|
      "('#{prefix}-#{n}', 'shop', 'order.placed', '#{"x" * 256}', 'utf-8', 'text/plain', '{}', #{long_ago}, #{published_at}, #{attempts})"
    end
    connection.execute("INSERT INTO #{TABLE} (id, exchange_name, routing_key, body, body_encoding, content_type, headers, " \
                       "created_at, published_at, attempts) VALUES #{values.join(", ")}")
  end
end

# @return [Array<Float>] milliseconds of each add, in a transaction of its own, until the block says so
def add_until
  store = STORE.new(table: TABLE)
  times = []
  until yield
    record = AceMQ::AMQP::Patterns::OutboxRecord.new(id: SecureRandom.uuid, exchange: "shop", routing_key: "order.placed",
                                                     body: "x" * 256, content_type: "text/plain", headers: {})
    times << (Benchmarks.seconds { ActiveRecord::Base.transaction { store.add(record) } } * 1_000)
  end
  times
end

# @return [Integer] the process
def purge_in_a_process(answer)
  fork do
    connect
    removed = nil
    seconds = Benchmarks.seconds do
      removed = AceMQ::Operations::Purge.new.outbox(STORE.new(table: TABLE), older_than: 7 * 86_400)
    end
    answer.puts("#{removed} #{seconds}")
    exit!(0) # the servers are the parent's
  end
end

def percentile(times, share)
  times.sort[[(times.size * share).floor, times.size - 1].min]
end

def count(connection, prefix)
  connection.select_value("SELECT COUNT(*) FROM #{TABLE} WHERE id LIKE '#{prefix}-%'").to_i
end

connection = connect
connection.drop_table(TABLE, if_exists: true)
STORE.create_table(connection, table: TABLE)
fill(connection, ROWS, "published", long_ago, 0)
fill(connection, SPARED, "pending", "NULL", 0)
fill(connection, SPARED, "retired", "NULL", 10)
puts "#{ROWS} published rows, #{SPARED} pending, #{SPARED} retired, on #{DATABASE}"

quiet_until = Process.clock_gettime(Process::CLOCK_MONOTONIC) + QUIET
quiet = add_until { Process.clock_gettime(Process::CLOCK_MONOTONIC) > quiet_until }

answer, child = IO.pipe
ActiveRecord::Base.connection_handler.clear_all_connections! # no connection is shared with the process
purging = purge_in_a_process(child)
child.close
connection = connect
busy = add_until { Process.wait(purging, Process::WNOHANG) }
removed, seconds = answer.read.split
printf("%d rows removed in %.1f s\n\n", removed, seconds)

puts "an add, in ms                    adds      p50      p99    worst"
{ "without a purge" => quiet, "beside the purge" => busy }.each do |title, times|
  printf("  %-24s %9d %8.1f %8.1f %8.1f\n", title, times.size, percentile(times, 0.5), percentile(times, 0.99), times.max)
end

spared = %w[pending retired].map { |prefix| count(connection, prefix) }
left = count(connection, "published")
connection.drop_table(TABLE)
abort "rows are gone that must not be: #{spared} are left of #{SPARED} each" unless spared.all?(SPARED)
abort "#{left} published rows are left" unless left.zero?
abort "an add took longer than #{LIMIT} ms at the 99th percentile" if percentile(busy, 0.99) > LIMIT
puts "\nno unpublished and no retired row was touched"
