# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing"

RSpec.describe AceMQ::Rails::Relays do
  let(:gate) { AceMQ::AMQP::Patterns::Relay::Gate }

  around do |example|
    former = gate.keeper
    gate.keeper = described_class
    example.run
  ensure
    gate.keeper = former
    described_class.clear
  end

  def new_one
    AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Testing::FakeTransport.new, AceMQ::AMQP::Patterns::InMemoryOutboxStore.new)
                                      .tap { |relay| cleanups << -> { relay.close } }
  end

  # @return [String] what the block answers in a child of this process
  def in_child
    reader, writer = IO.pipe
    child = fork do
      writer.write(yield.to_s)
      writer.close
      exit!(0)
    end
    writer.close
    reader.read.tap { Process.wait(child) }
  end

  it "knows which of those that it keeps were started in this process, whoever has started them" do
    one, other = Array.new(2) { described_class.keep(new_one) }
    new_one.start # which is nobody's but the caller's
    expect(described_class.started).to eq []

    other.start
    expect(described_class.started).to eq [other]
    described_class.start
    expect(described_class.started).to eq [one, other]
    expect(in_child { described_class.started.size }).to eq "0"
    described_class.release([one])
    expect(described_class.started).to eq [other]
  end
end
