# frozen_string_literal: true

# A service announces something new, and nobody has bound a queue for it yet: its rows pile up in front of everybody
# else's.
RSpec.describe "A new event type deployed before its consumer", :broker do
  long = ENV["ACEMQ_LONG"] == "1"
  backlog = long ? 100_000 : 2_000
  writing = long ? 30 : 1.5 # seconds
  destinations = Array.new(99) { |n| format("d%02d", n) }

  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      bind(queue, destinations)
    end

    let(:amqp) { open_connection }
    let(:exchange) { "shop.#{SecureRandom.hex(4)}" }
    let(:queue) { new_queue(amqp) }

    def bind(queue, keys)
      amqp.declare_exchange(exchange, kind: "direct", auto_delete: true)
      keys.each { |key| amqp.bind(queue: queue, exchange: exchange, routing_key: key) }
    end

    def two_relays(**options)
      Array.new(2) { new_relay(open_connection, interval: 0.05, **options) }
    end

    # Written an hour ago, by one statement.
    def fill_backlog(count)
      n, source, earlier = if database == :postgres
                             ["n", "generate_series(1, #{count}) n", "'#{count - 1} microseconds'::interval"]
                           else
                             ["seq", "seq_1_to_#{count}", "INTERVAL #{count - 1} MICROSECOND"]
                           end
      id = "CONCAT('b-', LPAD(CAST(#{n} AS CHAR(6)), 6, '0'))"
      micros = database == :postgres ? "n * '1 microsecond'::interval" : "INTERVAL seq MICROSECOND"
      execute(<<~SQL)
        INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at)
        SELECT #{id}, '#{exchange}', 'new.event', '{}', 'utf-8', 'application/json', '{}',
               #{sql_time(-3_600)} - #{earlier} + #{micros} FROM #{source}
      SQL
    end

    def put_all(numbers, keys)
      ActiveRecord::Base.transaction do
        numbers.each { |n| put(format("m-%06d", n), exchange: exchange, to: keys[n % keys.size]) }
      end
    end

    # For so many seconds, small transactions.
    def write_for(seconds, keys)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      (0..).each_slice(20) do |numbers|
        put_all(numbers, keys)
        return numbers.last + 1 if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
      end
    end

    def counted(condition)
      value("SELECT COUNT(*) FROM acemq_outbox WHERE #{condition}").to_i
    end

    # @return [Hash{String => Array<String>}] in the order of their arrival
    def ids_by_key(queue)
      drain(amqp, queue).group_by(&:routing_key).transform_values { |found| found.map(&:message_id) }
    end

    # What one writer has written, in the order in which it has to arrive.
    def written(count, keys)
      (0...count).group_by { |n| keys[n % keys.size] }.transform_values { |found| found.map { |n| format("m-%06d", n) } }
    end

    it "keeps nobody else waiting while #{backlog} of its rows do, and they arrive in order when it is bound" do
      fill_backlog(backlog)
      two_relays.each(&:start)
      count = write_for(writing, destinations)
      eventually(long ? 300 : 30) { expect(counted("published_at IS NULL")).to eq backlog }

      expect(ids_by_key(queue)).to eq written(count, destinations)
      expect(counted("attempts > 0 AND id <> 'b-000001'")).to eq 0
      expect(row("b-000001")["attempts"].to_i).to be_positive
      expect(reported.size).to be_between(1, 2) # each relay that has tried, once

      late = new_queue(amqp)
      bind(late, %w[new.event])
      sweep_quietly(new_relay(amqp)) # somebody does not want to wait for the end of the pause
      eventually(long ? 1_800 : 30) { expect(counted("published_at IS NULL")).to eq 0 }
      expect(ids_in(amqp, late)).to eq(Array.new(backlog) { |n| format("b-%06d", n + 1) })
      expect(counted("attempts > 0 AND id <> 'b-000001'")).to eq 0
    end

    # A nack may let others pass that are on their way with it: with one on its way at a time there are none.
    it "keeps every order at in_flight: 1, even that of a queue that nacks" do
      full = new_queue(amqp, arguments: { "x-max-length" => 5, "x-overflow" => "reject-publish" })
      bind(full, %w[full])
      keys = %w[d01 full new.event d02 full]
      put_all(0...60, keys)
      arrived = []
      done = false
      relaying = two_relays(in_flight: 1).map { |relay| Thread.new { sweep_quietly(relay) until done } }
      eventually { expect(counted("attempts > 0 AND routing_key = 'full'")).to be_positive }
      eventually(20) do
        arrived.concat(ids_in(amqp, full))
        expect(counted("published_at IS NULL AND routing_key <> 'new.event'")).to eq 0
      end
      done = true
      relaying.each(&:join)
      arrived.concat(ids_in(amqp, full))

      expect(arrived).to eq written(60, keys)["full"]
      expect(ids_by_key(queue)).to eq written(60, keys).slice("d01", "d02")
      expect(counted("attempts > 0 AND routing_key IN ('d01', 'd02')")).to eq 0
      expect(counted("attempts > 0 AND routing_key = 'new.event'")).to eq 1
    end

    # What is behind it waits, whatever it is; it is counted to the ceiling, retires, and the rest goes out as written.
    it "stops everything with ordering: :strict until it is retired, however many relays there are" do
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(max_attempts: 2)
      relays = Array.new(2) { new_relay(open_connection, store, ordering: :strict) }
      keys = %w[new.event d01 d02 d03]
      put_all(0...12, keys)
      ids = Array.new(12) { |n| format("m-%06d", n) }
      lost = ids.each_slice(4).map(&:first)

      waves = lost.flat_map do
        relays.each { |relay| expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, &:unroutable?) }
        [marked.size]
      end
      expect(waves).to eq [0, 3, 6]
      expect(store.retired.map(&:id)).to eq lost
      expect(relays.sum(&:sweep)).to eq 3
      expect(ids_in(amqp, queue)).to eq ids - lost
    end

    it "is charged row by row with ordering: :none, and two relays share the rest without sending anything twice" do
      count = long ? 20_000 : 500
      put_all(0...count, destinations + %w[new.event])
      two_relays(ordering: :none, batch: 20).each(&:start)
      good = written(count, destinations + %w[new.event]).except("new.event").values.flatten
      eventually(long ? 600 : 60) { expect(counted("published_at IS NOT NULL")).to eq good.size }
      relays.each(&:close)

      expect(ids_in(amqp, queue)).to match_array(good)
      expect(counted("attempts > 0")).to eq count - good.size
    end
  end
end
