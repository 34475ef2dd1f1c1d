# frozen_string_literal: true

require "active_support/notifications"
require "acemq/metrics"

RSpec.describe AceMQ::AMQP::Patterns::HitRate do
  let(:ack) { AceMQ::AMQP::Ack }
  let(:store) { AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new }

  def message(id)
    AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: id))
  end

  def idempotent(store = self.store, **options, &handler)
    AceMQ::AMQP::Patterns.idempotent(store, **options, &handler)
  end

  # What came of one call each, by a store that answers as it is told.
  def answering(claim, taken_over: false)
    Class.new do
      define_method(:claim) { |_| claim }
      define_method(:taken_over?) { |_| taken_over }
      define_method(:confirm) { |_| true }
    end.new
  end

  it "counts what came of each claim, per store" do
    handler = idempotent { ack.accept }
    store.claim("taken")
    handler.call(message("m-1"))
    2.times { handler.call(message("m-1")) }
    handler.call(message("taken"))

    expect(store.hit_rate.to_h).to eq(first: 1, duplicate: 2, in_progress: 1, taken_over: 0, lost: 0)
    expect(store.hit_rate[:duplicate]).to eq 2
    expect(store.hit_rate.inspect).to match(/HitRate first=1 duplicate=2 in_progress=1/)
    expect { store.hit_rate[:nonsense] }.to raise_error(KeyError)
  end

  it "is an observer for a store that has none, told apart by what the store answers" do
    rate = described_class.new
    %i[claimed duplicate in_progress].each do |claim|
      idempotent(answering(claim), telemetry: rate) { ack.accept }.call(message("m"))
    end
    idempotent(answering(:claimed, taken_over: true), telemetry: rate) { ack.accept }.call(message("m"))
    late = idempotent(answering(:claimed), telemetry: rate) { raise AceMQ::AMQP::Patterns::ClaimLostError, "late" }
    expect { late.call(message("m")) }.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError)
    rate.count("acemq.consume.total", 1, queue: "q")

    expect(rate.to_h).to eq(first: 2, duplicate: 1, in_progress: 1, taken_over: 1, lost: 1)
  end

  it "tells an observer of the family's kind" do
    told = []
    observer = Object.new
    observer.define_singleton_method(:count) { |metric, delta = 1, **labels| told << [metric, delta, labels] }
    2.times { idempotent(telemetry: observer) { ack.accept }.call(message("m")) }

    expect(told).to eq [["acemq.idempotency.total", 1, { outcome: :first }], ["acemq.idempotency.total", 1, { outcome: :duplicate }]]
  end

  it "instruments each outcome" do
    events = []
    callback = ->(*, payload) { events << payload }
    ActiveSupport::Notifications.subscribed(callback, "idempotency.acemq") do
      2.times { idempotent { ack.accept }.call(message("m-1")) }
    end

    store_name = "AceMQ::AMQP::Patterns::InMemoryIdempotencyStore"
    expect(events).to eq [{ outcome: :first, key: "m-1", store: store_name }, { outcome: :duplicate, key: "m-1", store: store_name }]
  end

  it "is among the metrics" do
    metrics = AceMQ::Metrics.new.start
    idempotent(answering(:claimed, taken_over: true)) { ack.accept }.call(message("m-1"))
    late = idempotent(answering(:claimed)) { raise AceMQ::AMQP::Patterns::ClaimLostError, "late" }
    expect { late.call(message("m-2")) }.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError)

    expect(metrics.to_prometheus).to include('acemq_idempotency_total{outcome="taken_over"} 1', 'acemq_idempotency_total{outcome="lost"} 1')
  ensure
    metrics.stop
  end

  it "lets no observer get in the way of the work" do
    broken = Object.new
    broken.define_singleton_method(:count) { |*, **| raise "no statsd" }

    expect do
      expect(idempotent(telemetry: broken) { ack.accept }.call(message("m"))).to be_accept
    end.to output(/an observer of idempotency failed: no statsd/).to_stderr
    expect(store.hit_rate[:first]).to eq 1
  end

  it "loses no count between threads" do
    rate = described_class.new
    Array.new(8) { Thread.new { 500.times { rate.count(described_class::METRIC, 1, outcome: "first") } } }.each(&:join)

    expect(rate[:first]).to eq 4_000
  end

  it "refuses an observer that cannot be one" do
    expect { idempotent(telemetry: :statsd) { ack.accept } }.to raise_error(ArgumentError, /telemetry: must answer count/)
  end
end
