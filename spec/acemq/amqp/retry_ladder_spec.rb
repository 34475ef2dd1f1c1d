# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::AMQP::RetryLadder do
  def ladder(policy, threshold: 0.001)
    described_class.for("q", policy, threshold: threshold)
  end

  def exponential(...)
    AceMQ::AMQP::RetryPolicy.exponential(...)
  end

  it "has one rung per delay, by delay" do
    expect(ladder(exponential(7, 10, 60)).queues).to eq(%w[q.retry.10s q.retry.20s q.retry.40s q.retry.1m])
  end

  it "has as few for attempts without end" do
    expect(ladder(exponential(2**62, 10, 60)).queues).to eq(%w[q.retry.10s q.retry.20s q.retry.40s q.retry.1m])
  end

  it "keeps delays apart that differ by a millisecond, and names them by it" do
    expect(described_class.new("q", [1.5, 1.501, 2]).rungs.map { |rung| [rung.queue, rung.arguments["x-message-ttl"]] })
      .to eq([["q.retry.1500ms", 1500], ["q.retry.1501ms", 1501], ["q.retry.2s", 2000]])
  end

  it "gives the first rung that waits as long, or the longest" do
    ladder = ladder(exponential(4, 10))

    expect([5, 10, 10.0004, 11, 40, 1000].map { |delay| ladder.rung_for(delay).queue })
      .to eq(%w[q.retry.10s q.retry.10s q.retry.10s q.retry.20s q.retry.40s q.retry.40s])
    expect(ladder(AceMQ::AMQP::RetryPolicy.none).rung_for(1)).to be_nil
  end

  it "never waits longer than the broker can" do
    ladder = ladder(exponential(3000, 1))

    expect(ladder.rungs.last.arguments["x-message-ttl"]).to eq((2**32) - 1)
    expect(ladder.rungs.size).to eq(24)
    expect(ladder.rung_for(Float::INFINITY)).to eq(ladder.rungs.last)
  end

  it "declares nothing when there is nothing to wait in" do
    transport = AceMQ::Testing::FakeTransport.new
    ladder(AceMQ::AMQP::RetryPolicy.none).declare(AceMQ::AMQP::Connection.new(transport: transport))

    expect(transport.declared_exchanges).to be_empty
  end

  it "cannot be made for a name that leaves no room for the suffix" do
    connection = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new)

    expect { described_class.for("q" * 250, exponential(2, 60)).declare(connection) }
      .to raise_error(ArgumentError, /queue is 259 bytes/)
  end
end
