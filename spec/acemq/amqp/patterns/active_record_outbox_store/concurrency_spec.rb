# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "under concurrency" do
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
        expect_exactness(AceMQ::SpecSupport::OutboxTraffic.new(seconds: 3, **hands).run)
      end

      it "does so for half a minute", :long do
        expect_exactness(AceMQ::SpecSupport::OutboxTraffic.new(seconds: 30, **hands, failing: 0.5).run)
      end
    end
  end

  on_each_database(:postgres, :mariadb) do
    before { make_outbox(:application) }

    it "publishes every record once, in order, from a table that has only an application's index" do
      if database == :mariadb
        execute("ALTER TABLE acemq_outbox MODIFY created_at DATETIME(6) NOT NULL, MODIFY locked_until DATETIME(6)")
      end

      expect_exactness(AceMQ::SpecSupport::OutboxTraffic.new(seconds: 2, relays: 3, writers: 3).run)
    end
  end
end
