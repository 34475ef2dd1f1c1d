# frozen_string_literal: true

# Stores with the family's three or four methods: the relay follows the family's rule for them.
RSpec.describe AceMQ::AMQP::Patterns::OutboxRelay, "over a store that cannot claim" do
  include AceMQ::SpecSupport::Records

  # Leases what `pending` answers, and frees it by `mark_failed` or `mark_published` alone, as the family's own do.
  leasing_store = Class.new do
    attr_reader :marked, :failed, :asked, :leased

    def initialize
      @records = {}
      @leased = []
      @marked = []
      @failed = []
      @asked = []
    end

    def add(record) = @records[record.id] = record

    def pending(limit)
      @asked << limit
      taken = @records.values.reject { |record| @leased.include?(record.id) }.first(limit)
      @leased |= taken.map(&:id)
      taken
    end

    def mark_published(id)
      raise IOError, "the database refuses" if @refusing

      @marked << id
      @records.delete(id)
    end

    def mark_failed(id, reason)
      @failed << [id, reason]
      @leased.delete(id)
    end

    def refuse_marks(refusing) = @refusing = refusing
    def expire_leases = @leased.clear
  end

  let(:store) { leasing_store.new }
  let(:transport) { AceMQ::SpecSupport::ScriptedTransport.new }
  let(:relay) { described_class.new(transport, store) }

  before { add_records(store, "1" => "a", "2" => "b", "3" => "a") }

  it "marks each record as soon as it is confirmed" do
    seen = []
    transport.script("b", -> { seen.concat(store.marked) && nil })

    expect(relay.sweep).to eq 3
    expect(seen).to eq %w[1]
    expect(store.marked).to eq %w[1 2 3]
    expect(store.asked).to eq [100]
  end

  it "stops at the first failure and counts it, with its reason" do
    transport.script("b", AceMQ::AMQP::PublishError.new("no queue is bound", unroutable: true))

    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)

    expect(store.marked).to eq %w[1]
    expect(store.failed).to eq [["2", "no queue is bound"]]
    expect(transport.ids).to eq %w[1]
  end

  it "goes on in order when the failure is over, without waiting for a lease that it cannot end" do
    transport.script("b", AceMQ::AMQP::PublishError.new("no"), nil)
    relay.sweep rescue nil # rubocop:disable Style/RescueModifier

    expect(relay.sweep).to eq 2
    expect(store.marked).to eq %w[1 2 3]
  end

  it "counts nothing for a lost connection, and sends the rest when it is back" do
    transport.script("b", Errno::ECONNRESET.new, nil)
    expect { relay.sweep }.to raise_error(Errno::ECONNRESET)

    expect(store.failed).to be_empty
    expect(relay.sweep).to eq 2
    expect(store.marked).to eq %w[1 2 3]
    expect(transport.ids).to eq %w[1 2 3]
  end

  it "sends nothing from memory for longer than a lease may be" do
    transport.script("a", Errno::ECONNRESET.new, nil)
    clock = AceMQ::AMQP::Clock
    now = clock.now
    allow(clock).to receive(:now) { now }
    expect { relay.sweep }.to raise_error(Errno::ECONNRESET)

    now += AceMQ::AMQP::Patterns::Relay::PendingStore::IN_HAND + 1
    expect(relay.sweep).to eq 0
    store.expire_leases
    expect(relay.sweep).to eq 3
  end

  it "never asks for 0 records, which is all of them" do
    relay = described_class.new(transport, store, batch: 3)
    transport.script("a", Errno::ECONNRESET.new, nil)
    expect { relay.sweep }.to raise_error(Errno::ECONNRESET)
    relay.sweep

    expect(store.asked).to eq [3, 1]
  end

  it "marks what the database refused before it reads again, and does not send it twice" do
    store.refuse_marks(true)
    2.times { expect { relay.sweep }.to raise_error(IOError) }
    expect(store.asked.size).to eq 1

    store.refuse_marks(false)
    expect(relay.sweep).to eq 2
    expect(store.marked).to eq %w[1 2 3]
    expect(transport.ids).to eq %w[1 2 3]
  end

  it "needs no mark_failed" do
    three = leasing_store.new.tap { |store| store.singleton_class.undef_method(:mark_failed) }
    add_records(three, "4" => "a", "5" => "b")
    transport.script("a", RuntimeError.new("no"), nil)
    relay = described_class.new(transport, three)

    expect { relay.sweep }.to raise_error("no")
    expect(relay.sweep).to eq 2
    expect(transport.ids).to eq %w[4 5]
  end

  it "gives the store a reason that a database can keep" do
    transport.script("a", RuntimeError.new("caf\xE9".b))
    expect { relay.sweep }.to raise_error(RuntimeError)

    expect(store.failed).to eq [["1", "caf\uFFFD"]]
  end

  it "sends one message at a time over the pipeline too" do
    pipeline = AceMQ::SpecSupport::ScriptedPipeline.new
    pipeline.verdict("2", returned("b"))

    expect { described_class.new(pipeline, store).sweep }.to raise_error(AceMQ::AMQP::PublishError)
    expect(pipeline.submitted).to eq [%w[1], %w[2]]
    expect(store.failed.map(&:first)).to eq %w[2]
  end

  it "publishes an outbox in memory in order" do
    store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
    add_records(store, "1" => "a", "2" => "b", "3" => "a")
    transport.script("b", RuntimeError.new("no"), nil)
    relay = described_class.new(transport, store)
    expect { relay.sweep }.to raise_error("no")
    expect(relay.sweep).to eq 2

    expect(transport.ids).to eq %w[1 2 3]
    expect(store.size).to eq 0
  end
end
