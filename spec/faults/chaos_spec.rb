# frozen_string_literal: true

require "stringio"
require_relative "chaos/run"

# What bin/chaos does, here with the servers of this run.
RSpec.describe AceMQ::Chaos::Run, :broker do
  let(:out) { StringIO.new }

  def chaos(seconds, seed: RSpec.configuration.seed, **options)
    described_class.new(seed: seed, seconds: seconds, out: out, **options)
  end

  def expect_all_well(run)
    well = run.call
    expect(well).to be(true), -> { "#{out.string}\n#{run.matrix}\nseed #{RSpec.configuration.seed}" }
  end

  # An episode that has begun is finished, which takes up to 20 s.
  it "loses nothing, blames nobody and repeats no more than it may, whatever relay, link or session dies" do
    expect_all_well(chaos(25, databases: %w[postgres mariadb sqlite], faults: AceMQ::Chaos::Plan::GENTLE))
  end

  it "does so for 20 minutes, brokers and databases included", :long do
    expect_all_well(chaos(20 * 60, databases: %w[postgres mariadb sqlite]))
  end

  # By a plan in which a lane has its exchange and no binding for a while: without the exchange nothing is published.
  it "finds out when a relay calls published what reached no queue" do
    run = chaos(1, seed: 84, databases: %w[sqlite], faults: %w[relay.kill], failpoints: %w[any], relay: { mandatory: false })

    expect(run.call).to be false
    expect(run.failures.first.complaints.first).to match(/marked published, in no queue/)
    expect(File).to exist(File.join(run.failures.first.folder, "evidence.txt"))
    FileUtils.rm_rf(File.dirname(run.failures.first.folder))
  end
end
