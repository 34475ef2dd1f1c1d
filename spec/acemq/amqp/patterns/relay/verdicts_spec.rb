# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::Relay::Verdicts do
  include AceMQ::SpecSupport::Records

  relay = AceMQ::AMQP::Patterns::Relay

  # Records a1, a2 go to destination a, b1 to b; what is left out was not sent.
  def lists(known, ordering: :destination, on_retire: :continue)
    records = %w[a1 b1 a2 b2 a3].map { |id| record(id, to: id[0]) }
    outcomes = AceMQ::AMQP::Patterns::Relay::Outcomes.new(records)
    known.each do |id, outcome|
      subject = records.find { |record| record.id == id.to_s }
      outcomes.note(subject, outcome == :ok ? AceMQ::AMQP::Patterns::Relay::Outcomes::CONFIRMED : failure(subject, outcome))
    end
    described_class.new(ordering, on_retire).lists(outcomes).to_h
  end

  def failure(record, kind)
    permanent = kind == :refused
    scope = permanent ? :record : kind
    AceMQ::AMQP::Patterns::Relay::Failure.new(error: RuntimeError.new("#{kind} #{record.id}"), scope: scope,
                                              permanent: permanent, record: record)
  end

  def settled(confirmed: [], failed: [], held: [], unsent: [])
    { confirmed: confirmed, failed: failed, held: held, unsent: unsent }
  end

  all_ok = { a1: :ok, b1: :ok, a2: :ok, b2: :ok, a3: :ok }

  it "marks what was confirmed" do
    expect(lists(all_ok)).to eq settled(confirmed: %w[a1 b1 a2 b2 a3])
  end

  it "releases, uncharged, what was not sent" do
    expect(lists({ a1: :ok })).to eq settled(confirmed: %w[a1], unsent: %w[b1 a2 b2 a3])
  end

  it "holds a destination by its head alone; the rest of it is released, other destinations are marked" do
    expect(lists({ a1: :destination, b1: :ok, a2: :destination, b2: :ok, a3: :destination }))
      .to eq settled(confirmed: %w[b1 b2], held: [["a1", "destination a1"]], unsent: %w[a2 a3])
  end

  it "marks a follower that got through all the same" do
    expect(lists(all_ok.merge(a1: :destination)))
      .to eq settled(confirmed: %w[b1 a2 b2 a3], held: [["a1", "destination a1"]])
  end

  it "retires what can never be sent, and lets its destination flow on" do
    expect(lists(all_ok.merge(a1: :refused)))
      .to eq settled(confirmed: %w[b1 a2 b2 a3], failed: [["a1", "refused a1", true]])
    expect(lists({ a1: :refused, b1: :ok, a2: :refused, b2: :ok, a3: :destination }))
      .to eq settled(confirmed: %w[b1 b2], failed: [["a1", "refused a1", true], ["a2", "refused a2", true]],
                     held: [["a3", "destination a3"]])
  end

  it "stops a destination at what can never be sent when told to" do
    expect(lists({ a1: :refused, b1: :ok, b2: :ok }, on_retire: :hold))
      .to eq settled(confirmed: %w[b1 b2], held: [["a1", "refused a1"]], unsent: %w[a2 a3])
  end

  it "charges a failure of the record's own, and releases its followers" do
    expect(lists({ a1: :record, b1: :ok, b2: :ok }))
      .to eq settled(confirmed: %w[b1 b2], failed: [["a1", "record a1", false]], unsent: %w[a2 a3])
  end

  it "charges nobody for a lost connection" do
    expect(lists({ a1: :ok, b1: :connection, a2: :connection }))
      .to eq settled(confirmed: %w[a1], unsent: %w[b1 a2 b2 a3])
  end

  it "does not judge a record that follows one of unknown fate" do
    expect(lists({ a1: :connection, b1: :ok, a2: :destination }))
      .to eq settled(confirmed: %w[b1], unsent: %w[a1 a2 b2 a3])
  end

  describe "ordering: :strict" do
    it "releases everything behind the first failure, whatever its destination, and charges it to the ceiling" do
      expect(lists({ a1: :ok, b1: :destination }, ordering: :strict))
        .to eq settled(confirmed: %w[a1], failed: [["b1", "destination b1", false]], unsent: %w[a2 b2 a3])
      expect(lists({ a1: :refused, b1: :refused }, ordering: :strict))
        .to eq settled(failed: [["a1", "refused a1", true]], unsent: %w[b1 a2 b2 a3])
    end
  end

  describe "ordering: :none" do
    it "holds each failing record for itself" do
      expect(lists({ a1: :destination, b1: :ok, a2: :destination, b2: :ok, a3: :ok }, ordering: :none))
        .to eq settled(confirmed: %w[b1 b2 a3], held: [["a1", "destination a1"], ["a2", "destination a2"]])
    end
  end

  describe relay::Failure do
    # What a database can store, whatever the error carries.
    {
      RuntimeError.new("caf\xE9 down".b) => "caf\uFFFD down",
      RuntimeError.new("caf\u00E9 down".b) => "caf\u00E9 down",
      RuntimeError.new("a\0b") => "ab",
      RuntimeError.new("") => "RuntimeError",
      RuntimeError.new("gr\u00FC\u00DFe".encode(Encoding::UTF_16LE)) => "gr\u00FC\u00DFe",
      Class.new(StandardError) { def message = raise("no") }.new => /\A#<Class/,
      Class.new(IOError) { def message = nil }.new => /\A#<Class/
    }.each do |error, reason|
      it "gives #{reason.inspect} as a reason" do
        expect(described_class.new(error: error).reason).to match(reason).and be_valid_encoding
      end
    end
  end
end
