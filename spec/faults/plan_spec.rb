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

    expect(raising.map(&:failpoint)).to eq described_class::FAILPOINTS - %w[any mid_claim]
  end

  it "stops in the middle of a claim only where a claim has one" do
    possible = %w[postgres mariadb sqlite].to_h { |name| [name, %w[relay.kill relay.raise]] }
    halved = described_class.cells(possible, %w[mid_claim])

    expect(halved.map(&:database).tally).to eq("mariadb" => 2, "sqlite" => 2)
  end

  it "has relays of every ordering, and does not keep strict ones waiting" do
    plans = described_class.sequence(7, cells).first(40).group_by(&:ordering)

    expect(plans.keys).to match_array(%i[destination none strict])
    expect(plans[:strict].map(&:in_flight)).to all(eq(1))
    expect(plans[:strict]).to all(be_late_first)
  end
end
