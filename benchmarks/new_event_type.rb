# frozen_string_literal: true

# What the destinations of an outbox lose when somebody deploys a new event type before its consumer: a hundred thousand
# rows that no queue is bound for stand in front of everybody else's. Two relays in processes of their own; the same rows
# with and without that backlog, by turns.
#
#   ruby benchmarks/new_event_type.rb       starts a RabbitMQ, a PostgreSQL and a MariaDB of its own
#   DATABASES=postgres,mariadb BACKLOG=100000 ROWS=50000 ROUNDS=3 BATCH=100

require_relative "outbox"

DATABASES = ENV.fetch("DATABASES", "postgres,mariadb").split(",")
BACKLOG = Benchmarks.number("BACKLOG", 100_000)
ROWS = Benchmarks.number("ROWS", 50_000)
ROUNDS = Benchmarks.number("ROUNDS", 3)
BATCH = Benchmarks.number("BATCH", 100)
DESTINATIONS = 99

# @return [Float] rows per second
def rate(outbox, backlog)
  outbox.clear
  outbox.fill(backlog, "unbound", age: 3_600) if backlog.positive?
  outbox.analyze
  outbox.with_relays(2, batch: BATCH) do
    outbox.fill(ROWS, "bound", destinations: DESTINATIONS)
    ROWS / Benchmarks.seconds { outbox.arrived_of(ROWS) }
  end
end

DATABASES.each do |database|
  outbox = Outbox.new(database)
  rates = { "#{DESTINATIONS} destinations alone" => 0, "behind #{BACKLOG} rows of one without a queue" => BACKLOG }
          .transform_values { |backlog| [backlog, []] }
  ROUNDS.times do |round|
    rates.each do |name, (backlog, found)|
      found << rate(outbox, backlog)
      warn format("%s, round %d  %-45s %8d rows/s", database, round + 1, name, found.last)
    end
  end
  Benchmarks.report("#{database}: rows per second of two relays, median of #{ROUNDS} rounds", "rows/s",
                    rates.transform_values { |_, found| Benchmarks.median(found) })
  outbox.close
end
