# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::RetryPolicy do
  it "tries once unless told otherwise" do
    expect(described_class.none.next_delay(1)).to be_nil
    expect(described_class.none.schedule).to eq([])
  end

  it "doubles up to its limit" do
    expect(described_class.exponential(5, 1, 86_400).schedule).to eq([1, 2, 4, 8])
    expect(described_class.exponential(6, 10, 60).schedule).to eq([10, 20, 40, 60, 60])
    expect(described_class.fixed(4, 30).schedule).to eq([30, 30, 30])
  end

  it "lists its delays up to where they no longer change, however many attempts there are" do
    forever = 2**62

    expect(described_class.fixed(forever, 30).delays).to eq([30])
    expect(described_class.exponential(forever, 10, 60).delays).to eq([10, 20, 40, 60])
    expect(described_class.exponential(3, 10, 60).delays).to eq([10, 20])
    expect(described_class.exponential(forever, 1).delays.last).to eq(Float::INFINITY)
    expect(described_class.new(max_attempts: forever, initial_delay: 1, multiplier: 0.5).delays.last).to eq(0)
    expect(described_class.new(max_attempts: forever).delays).to eq([0])
    expect(described_class.none.delays).to eq([])
  end

  it "stops at its last attempt and at its age limit" do
    policy = described_class.exponential(5, 1, 86_400).give_up_after(120)

    expect(policy.next_delay(5)).to be_nil
    expect(policy.next_delay(1, 120)).to be_nil
    expect(policy.next_delay(1, 119.999, jitter: false)).to eq(1)
  end

  it "spreads delays by its jitter, and only then" do
    policy = described_class.exponential(5, 10)

    expect(Array.new(200) { policy.next_delay(1) }).to all(be_between(8, 12))
    expect(policy.next_delay(1, jitter: false)).to eq(10)
    expect(described_class.fixed(5, 10).next_delay(1)).to eq(10)
  end

  it "refuses what is no count and no time" do
    expect { described_class.new(max_attempts: 0) }.to raise_error(ArgumentError, /max_attempts/)
    expect { described_class.new(initial_delay: "soon") }.to raise_error(ArgumentError, /initial_delay/)
    expect { described_class.new(max_delay: -1) }.to raise_error(ArgumentError, /max_delay/)
  end
end
