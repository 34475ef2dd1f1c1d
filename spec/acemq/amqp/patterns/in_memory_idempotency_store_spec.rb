# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::InMemoryIdempotencyStore do
  subject(:store) { described_class.new(window: 60) }

  # What another consumer thread of the same process sees.
  def elsewhere(&block)
    Thread.new(&block).value
  end

  it "gives a key to one, and tells work in progress from work that is done" do
    expect(store.claim("k")).to eq(:claimed)
    expect(elsewhere { store.claim("k") }).to eq(:in_progress)
    expect(store.confirm("k")).to be(true)
    expect(elsewhere { store.claim("k") }).to eq(:duplicate)
    expect(elsewhere { store.first_time?("k") }).to be(false)
  end

  it "lets a key that was given back be claimed again" do
    store.claim("k")

    expect(store.forget("k")).to be(true)
    expect(elsewhere { store.first_time?("k") }).to be(true)
  end

  it "keeps a confirmed key, whoever wants it forgotten" do
    store.claim("k")
    store.confirm("k")

    expect(store.forget("k")).to be(false)
    expect(store.claim("k")).to eq(:duplicate)
  end

  it "confirms twice without complaint" do
    store.claim("k")

    expect(Array.new(2) { store.confirm("k") }).to eq([true, true])
  end

  it "settles nothing for an execution that has not claimed" do
    store.claim("k")

    expect(elsewhere { [store.confirm("k"), store.forget("k")] }).to eq([false, false])
    expect(elsewhere { store.claim("k") }).to eq(:in_progress)
  end

  it "has a claim that outlived its window taken over, and refuses its owner's late confirm" do
    brief = described_class.new(window: 0.05)
    brief.claim("k")
    eventually { expect(elsewhere { brief.claim("k") }).to eq(:claimed) }

    expect { brief.confirm("k") }.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError, /window/)
    expect(brief.forget("k")).to be(false)
  end

  it "counts the window from the claim, whatever happens in between" do
    brief = described_class.new(window: 0.2)
    brief.claim("k")
    brief.confirm("k")
    until_free = elapsed { eventually(2) { expect(brief.claim("k")).to eq(:claimed) } }

    expect(until_free).to be < 1
  end

  it "tells keys apart byte by byte" do
    keys = ["k", "K", "k ", "k\0", "\xFF", "é", "e\u0301"]

    expect(keys.map { |key| store.claim(key) }).to all(eq(:claimed))
    expect(store.size).to eq(keys.size)
  end

  it "lets one of many threads through" do
    20.times do |i|
      winners = Array.new(8) { Thread.new { store.first_time?("key #{i}") } }.map(&:value)
      expect(winners.count(true)).to eq(1)
    end
  end

  it "takes the family's default for a window of nothing, and refuses what is no number" do
    expect(described_class.new(window: 0).window).to eq(3600.0)
    expect { described_class.new(window: "1") }.to raise_error(ArgumentError, /window/)
  end
end
