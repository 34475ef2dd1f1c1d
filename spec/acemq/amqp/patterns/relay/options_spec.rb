# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::OutboxRelay, "construction" do
  let(:claiming) { AceMQ::SpecSupport::FakeClaimingStore.new(lease: 30) }
  let(:plain) { AceMQ::AMQP::Patterns::InMemoryOutboxStore.new }
  let(:transport) { AceMQ::SpecSupport::ScriptedTransport.new }

  def relay(store = claiming, **options)
    described_class.new(transport, store, **options)
  end

  it "has the defaults of the family, in constants" do
    expect(described_class::DEFAULT_INTERVAL).to eq 1.0
    expect(described_class::DEFAULT_BATCH).to eq 100
    expect(relay).to have_attributes(interval: 1.0, batch: 100, running?: false)
    expect(relay(interval: 2, batch: 500)).to have_attributes(interval: 2, batch: 500)
  end

  {
    { interval: 0 } => /interval: .*more than 0, not 0/,
    { interval: -1 } => /interval/,
    { interval: Float::NAN } => /interval/,
    { interval: "1" } => /interval: .*"1"/,
    { batch: 0 } => /batch: .*from 1 to 10000, not 0/,
    { batch: 10_001 } => /batch/,
    { batch: 1.5 } => /batch/,
    { in_flight: 0 } => /in_flight/,
    { in_flight_bytes: 0 } => /in_flight_bytes: .*at least 1/,
    { confirm_timeout: 30 } => /confirm_timeout: 30 s must be less than the store's lease of 30 s/,
    { confirm_timeout: 0 } => /confirm_timeout/,
    { ordering: :global } => /ordering: .*:destination or :strict or :none/,
    { mandatory: "shop" } => /mandatory/,
    { mandatory: nil } => /mandatory/,
    { on_retire: :drop } => /on_retire: .*:continue or :hold/,
    { on_error: "log" } => /on_error/,
    { intervall: 1 } => /intervall/
  }.each do |options, text|
    it "refuses #{options}" do
      expect { relay(**options) }.to raise_error(ArgumentError, text)
    end
  end

  it "takes the confirm timeout as it is when the store names no lease" do
    expect { relay(plain, confirm_timeout: 3600) }.not_to raise_error
  end

  it "refuses an ordering that needs a store that can hold" do
    %i[destination none].each do |ordering|
      expect { relay(plain, ordering: ordering) }.to raise_error(ArgumentError, /InMemoryOutboxStore does not answer claim/)
    end
    expect { relay(plain, ordering: :strict) }.not_to raise_error
    expect { relay(plain, on_retire: :hold) }.to raise_error(ArgumentError, /on_retire: :hold.*claim/)
  end

  it "refuses a store that lacks one of the three methods, by name" do
    store = Class.new { def add(_) = nil }.new

    expect { relay(store) }.to raise_error(ArgumentError, /pending, mark_published/)
    expect { relay(nil) }.to raise_error(ArgumentError, /NilClass.*add/)
  end

  it "refuses what nothing can be published over" do
    expect { described_class.new(Object.new, claiming) }.to raise_error(ArgumentError, /Object does not answer publish/)
    expect { described_class.new(nil, claiming) }.to raise_error(ArgumentError, /NilClass/)
  end

  it "takes a connection, a transport, or any object that publishes" do
    connection = AceMQ::AMQP::Connection.new(transport: transport)

    [connection, transport].each do |first|
      expect { described_class.new(first, claiming) }.not_to raise_error
    end
  end

  it "shows no secret of its connection" do
    connection = AceMQ::AMQP::Connection.lazy("amqp://user:hush@localhost")

    expect(described_class.new(connection, claiming).inspect).to include("idle").and not_include("hush")
  end

  RSpec::Matchers.define_negated_matcher :not_include, :include
end
