# frozen_string_literal: true

# What a long backlog costs: the rate at which a relay drains a million pending rows, beside that of ten thousand; and the
# time of a claim while another session has kept a snapshot open in which nothing of what was published since is gone.
#
#   ruby benchmarks/backlog.rb       starts a RabbitMQ, a PostgreSQL and a MariaDB of its own
#   DATABASES=postgres,mariadb ROWS=1000000 FEW=10000 PUBLISHED=150000 BATCH=500
#   POOL=1024                        MiB of memory and log for a MariaDB of our own; with its 128 the million is read from disk

require_relative "outbox"

DATABASES = ENV.fetch("DATABASES", "postgres,mariadb").split(",")
ROWS = Benchmarks.number("ROWS", 1_000_000)
FEW = Benchmarks.number("FEW", 10_000)
PUBLISHED = Benchmarks.number("PUBLISHED", 150_000)
BATCH = Benchmarks.number("BATCH", 500)
POOL = Benchmarks.number("POOL", 1024)
DESTINATIONS = 99
CLAIMS = 31
FEW_NEW = 200

# Somebody's report, or backup.
class Reader < ActiveRecord::Base
  self.abstract_class = true
end

# @return [Float] rows per second, from the first that arrive on
def drain(outbox, rows)
  outbox.clear
  outbox.fill(rows, "bound", destinations: DESTINATIONS)
  outbox.analyze
  outbox.with_relays(1, batch: BATCH) do
    first = outbox.arrived_of(1)
    (rows - first) / Benchmarks.seconds { outbox.arrived_of(rows) }
  end
end

# @return [Float] milliseconds that it takes to claim a batch and to give it back
def claim
  store = Outbox::STORE.new
  found = Array.new(CLAIMS) do
    Benchmarks.seconds do
      claim = store.claim(100)
      claim.settle(unsent: claim.records.map(&:id))
    end
  end
  Benchmarks.median(found) * 1_000
end

def publish(count)
  store = Outbox::STORE.new
  while count.positive?
    claim = store.claim([5_000, count].min)
    count -= claim.settle(confirmed: claim.records.map(&:id)).marked
  end
end

def beside_a_snapshot(outbox)
  Reader.establish_connection(outbox.config)
  Reader.transaction(isolation: :repeatable_read) do
    Reader.connection.select_value("SELECT COUNT(*) FROM acemq_outbox")
    yield
  end
ensure
  Reader.remove_connection
end

def claims(outbox)
  outbox.clear
  outbox.fill(FEW + PUBLISHED, "bound", destinations: DESTINATIONS, age: 600)
  outbox.analyze
  found = { "nothing published yet" => claim }
  beside_a_snapshot(outbox) do
    publish(PUBLISHED)
    found["#{PUBLISHED} published under an open snapshot"] = claim
    publish(FEW)
    outbox.fill(FEW_NEW, "bound", destinations: DESTINATIONS, ids: "new")
    found["all published, and #{FEW_NEW} new ones"] = claim
  end
  outbox.forget_snapshots
  outbox.analyze
  found["the snapshot closed, and vacuumed"] = claim
  found
end

DATABASES.each do |database|
  outbox = Outbox.new(database)
  outbox.memory(POOL)
  # The long one takes minutes, in which a machine has its moods: so the short ones are spread around it.
  before = Array.new(5) { drain(outbox, FEW) }
  many = drain(outbox, ROWS)
  after = Array.new(5) { drain(outbox, FEW) }
  Benchmarks.report("#{database}: rows per second of one relay, batch #{BATCH}", "rows/s",
                    "#{FEW} pending, median of 10" => Benchmarks.median(before + after), "#{ROWS} pending" => many)
  Benchmarks.report("#{database}: a claim of 100 rows of #{DESTINATIONS} destinations, and back", "ms", claims(outbox))
  outbox.close
end
