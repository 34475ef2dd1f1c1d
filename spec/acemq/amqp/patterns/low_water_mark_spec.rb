# frozen_string_literal: true

require "acemq/amqp/patterns/sql/low_water_mark"

RSpec.describe AceMQ::AMQP::Patterns::LowWaterMark do
  let(:long_ago) { Time.utc(2026, 1, 1) }
  let(:just_now) { Time.utc(2026, 1, 2) }

  def mark(*names)
    described_class.new(names.map { |exchange, key, time| [exchange, key, time] }, just_now)
  end

  # Each of the stretches as [kind, names]: a gap by those that it is between.
  def stretches(mark, after = nil)
    mark.stretches(after).map { |one| [one.kind, *[one.exchange, one.low, one.high].compact] }
  end

  it "is the whole index where nothing is known" do
    expect(stretches(mark)).to eq([[:anywhere]])
    expect(mark.oldest).to eq(just_now)
  end

  it "goes through the index without a gap, from exchange to exchange" do
    expect(stretches(mark(%w[a k], %w[a m], %w[b k]))).to eq(
      [[:exchanges_below, "a"], [:keys_below, "a", "k"], [:destination, "a", "k"], [:keys_between, "a", "k", "m"],
       [:destination, "a", "m"], [:keys_above, "a", "m"], [:exchanges_between, "a", "b"], [:keys_below, "b", "k"],
       [:destination, "b", "k"], [:keys_above, "b", "k"], [:exchanges_above, "b"]]
    )
  end

  it "goes on behind a destination that it knows" do
    known = mark(%w[a k], %w[b k])

    expect(stretches(known, %w[a k]).first(3)).to eq([[:keys_above, "a", "k"], [:exchanges_between, "a", "b"], [:keys_below, "b", "k"]])
    expect(stretches(known, %w[b k])).to eq([[:keys_above, "b", "k"], [:exchanges_above, "b"]])
    expect(known.stretches(%w[a other])).to be_nil
  end

  it "looks no further back than the oldest row of a destination, and nowhere than where everything is known" do
    known = mark(["a", "k", long_ago], ["a", "m", just_now + 60], ["a", "n", nil])
    since = known.stretches(nil).select { |one| one.kind == :destination }.map(&:since)

    expect(since).to eq([long_ago, just_now, just_now])
    expect(known.stretches(nil).reject { |one| one.kind == :destination }.map(&:since)).to all(eq(just_now))
    expect(known.oldest).to eq(long_ago)
  end

  it "is outdated once there is a destination that it does not know" do
    known = mark(%w[a k])

    expect { known.saw([%w[a k]]) }.not_to change(known, :outdated?).from(false)
    expect { known.saw([%w[a k], %w[a other]]) }.to change(known, :outdated?).to(true)
  end
end
