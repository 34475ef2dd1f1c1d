# frozen_string_literal: true

require "acemq/amqp/patterns/sql/backoff"

RSpec.describe AceMQ::AMQP::Patterns::Backoff do
  def seconds(attempts, random)
    described_class.seconds(attempts, random: instance_double(Random, rand: random))
  end

  it "doubles from one second to thirty" do
    expect(Array.new(8) { |attempts| seconds(attempts, 0) }).to eq [1, 2, 4, 8, 16, 30, 30, 30]
    expect(seconds(10_000, 0)).to eq 30
  end

  it "takes up to a fifth off, so that what failed together does not come back together" do
    expect(seconds(0, 0.999)).to be_within(0.001).of(0.8)
    expect(seconds(9, 0.5)).to be_within(0.001).of(27)
  end
end
