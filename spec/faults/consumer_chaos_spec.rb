# frozen_string_literal: true

require_relative "consumer_chaos/run"

RSpec.describe AceMQ::ConsumerChaos, :broker do
  let(:server) { AceMQ::TestServers.new_rabbitmq.start }

  after { server.dispose }

  def run(**options)
    described_class.new(server, seed: RSpec.configuration.seed, **options)
  end

  def expect_all_well(run)
    well = run.call
    expect(well).to be(true), -> { "#{run.complaints.join("\n")}\n#{run.done}\nseed #{RSpec.configuration.seed}" }
    expect(run.done).to include(:kills, :restarts, :looks)
  end

  it "knows where every message is, whenever its consumers are dead" do
    expect_all_well(run(messages: 300, seconds: 12, pauses: 2))
  end

  it "does so for ten minutes", :long do
    expect_all_well(run(messages: 20_000, seconds: 600, pauses: 20))
  end
end
