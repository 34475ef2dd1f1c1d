# frozen_string_literal: true

require "acemq/operations"
require "acemq/testing"

RSpec.describe AceMQ::Operations::RelayProcess do
  let(:said) { Thread::Queue.new }
  let(:relay) do
    AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Testing::FakeTransport.new, AceMQ::AMQP::Patterns::InMemoryOutboxStore.new)
  end

  after { AceMQ::Rails::Relays.clear }

  # Its traps stand once it has said something.
  def run_until_told(**options)
    process = described_class.new({ "main" => relay }, say: said.method(:<<), **options)
    running = Thread.new { process.run }
    said.pop
    Process.kill("TERM", Process.pid)
    running.value
  end

  it "leaves nobody anything to wait for: what is left of its time is the connection's" do
    AceMQ::Rails::Relays.keep(relay)
    left = []

    expect(run_until_told(close_within: 20, disconnect: left.method(:<<))).to be true
    expect(left).to match [be_between(0, 20)]
    expect(AceMQ::Rails::Relays.kept).to be_empty
  end
end
