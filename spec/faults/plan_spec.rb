# frozen_string_literal: true

require_relative "chaos/plan"

RSpec.describe AceMQ::Chaos::Plan do
  let(:cells) { described_class.cells({ "postgres" => described_class::FAULTS }, described_class::FAILPOINTS) }

  def first(count, seed)
    described_class.sequence(seed, cells).first(count).map { |plan| [plan.to_s, plan.failpoints, plan.pace] }
  end

  it "is the same for the same seed, and another for another" do
    expect(first(20, 7)).to eq first(20, 7)
    expect(first(20, 7)).not_to eq first(20, 8)
  end

  it "has every cell before any comes again" do
    round = described_class.sequence(7, cells).first(cells.size)

    expect(round.map(&:cell)).to match_array(cells)
    expect(round.map(&:number)).to eq [*1..cells.size]
  end

  it "raises only where there is a place for it" do
    raising = cells.select { |cell| cell.fault == "relay.raise" }

    expect(raising.map(&:failpoint)).to eq described_class::FAILPOINTS - ["any"]
  end
end
