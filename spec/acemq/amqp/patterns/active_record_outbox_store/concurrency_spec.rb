# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "under concurrency" do
  # Relays, writers and a purger on one table. What the relays "publish" is written down while they hold the lease,
  # so the log of a destination is the order in which a broker would have got its messages.
  class Traffic
    DESTINATIONS = 12
    LIMIT = 40

    attr_reader :log, :oversized, :errors

    def initialize(seconds:, relays:, writers:, failing: 0.2)
      @seconds = seconds
      @relays = relays
      @writers = writers
      @failing = failing
      @log = Hash.new { |hash, key| hash[key] = [] }
      @oversized = []
      @errors = Queue.new
      @lock = Mutex.new
      @written = Hash.new(0)
    end

    def run
      @stop_writing = clock + @seconds
      writers = Array.new(@writers) { |i| thread { write(i) } }
      relays = Array.new(@relays) { thread { relay } }
      purger = thread { purge }
      writers.each(&:join)
      @written_all = true
      (relays << purger).each(&:join)
      self
    end

    # @return [Hash{String => Integer}] last number by destination
    def written
      @written
    end

    private

    def thread
      Thread.new do
        yield
      rescue StandardError => e
        @errors << e
      end
    end

    # One destination has one writer, so its numbers are in the order of its commits.
    def write(index)
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
      mine = (0...DESTINATIONS).select { |d| d % @writers == index }
      while clock < @stop_writing
        ActiveRecord::Base.transaction { rand(1..8).times { add_next(store, "d#{mine.sample}") } }
        ActiveRecord::Base.clear_active_connections!
      end
    end

    def add_next(store, destination)
      number = @lock.synchronize { @written[destination] += 1 }
      store.add(AceMQ::AMQP::Patterns::OutboxRecord.new(
                  id: SecureRandom.uuid, exchange: "e", routing_key: destination, body: number.to_s,
                  content_type: "text/plain", headers: {}
                ))
    end

    def relay
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 60)
      until @written_all && store.pending_count.zero?
        claim = store.claim(LIMIT)
        @oversized << claim.records.size if claim.records.size > LIMIT
        claim.empty? ? sleep(0.002) : settle(claim) # spinning, it would only keep the writers from writing
      end
    end

    # Some heads fail: what follows them is given back, as a relay does.
    def settle(claim)
      confirmed = []
      held = []
      unsent = []
      claim.records.group_by(&:routing_key).each do |destination, records|
        sent = rand < @failing ? rand(0...records.size) : records.size
        note(destination, records.first(sent))
        confirmed.concat(records.first(sent))
        held.concat(records[sent, 1])
        unsent.concat(records.drop(sent + 1))
      end
      settled = claim.settle(confirmed: confirmed.map(&:id), held: held.map { |r| [r.id, "no"] }, unsent: unsent.map(&:id))
      raise "a lease was lost" if settled.lost.positive?
    end

    def note(destination, records)
      @lock.synchronize { @log[destination].concat(records.map { |record| record.body.to_i }) }
    end

    def purge
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
      until @written_all && store.pending_count.zero?
        store.purge_published(0.2, batch: 100)
        sleep 0.05
      end
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  def expect_exactness(traffic)
    expect(Array.new(traffic.errors.size) { traffic.errors.pop }).to eq []
    expect(traffic.written.values.sum).to be > 100
    traffic.written.each do |destination, count|
      expect(traffic.log[destination] == (1..count).to_a)
        .to be(true), "#{destination}: #{first_deviation(traffic.log[destination], count)}"
    end
    expect(traffic.oversized).to eq []
  end

  def first_deviation(log, count)
    at = (0..count).find { |i| log[i] != i + 1 }
    "#{log.size} published of #{count}; from #{at} on: #{log[[at - 3, 0].max, 10]}"
  end

  before { allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds) { rand(0.01..0.05) } }

  {
    postgres: { relays: 4, writers: 4 },
    mariadb: { relays: 4, writers: 4 },
    sqlite: { relays: 2, writers: 1 }
  }.each do |name, hands|
    on_each_database(name) do
      before { make_outbox }

      it "publishes every record once, in order, with several relays at it" do
        expect_exactness(Traffic.new(seconds: 3, **hands).run)
      end

      it "does so for half a minute", :long do
        expect_exactness(Traffic.new(seconds: 30, **hands, failing: 0.5).run)
      end
    end
  end

  on_each_database(:postgres, :mariadb) do
    before { make_outbox(:application) }

    it "publishes every record once, in order, from a table that has only an application's index" do
      if database == :mariadb
        execute("ALTER TABLE acemq_outbox MODIFY created_at DATETIME(6) NOT NULL, MODIFY locked_until DATETIME(6)")
      end

      expect_exactness(Traffic.new(seconds: 2, relays: 3, writers: 3).run)
    end
  end
end
