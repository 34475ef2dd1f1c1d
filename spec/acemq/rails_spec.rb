# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing"

RSpec.describe AceMQ::Rails do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:fake) { AceMQ::AMQP::Connection.new(transport: transport) }

  around do |example|
    before = described_class.config
    example.run
  ensure
    described_class.connection = nil
    described_class.config = before
  end

  it "publishes through the connection it is given" do
    described_class.connection = fake
    described_class.publish({ a: 1 }, to: "order.placed", exchange: "shop")
    described_class.publish_all([1, 2], to: "n")

    expect(transport.published.map(&:routing_key)).to eq(%w[order.placed n n])
  end

  it "makes one connection, however many threads ask first" do
    made = Queue.new
    config = AceMQ::Rails::Configuration.new
    config.define_singleton_method(:build_connection) do
      made << true
      AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new)
    end
    described_class.config = config

    connections = Array.new(8) { Thread.new { described_class.connection } }.map(&:value)

    expect(connections.uniq.size).to eq(1)
    expect(made.size).to eq(1)
  end

  it "is connected only while there is a live link, and makes none by being asked" do
    described_class.connection = nil
    expect(described_class).not_to be_connected

    described_class.connection = fake
    expect(described_class).to be_connected

    transport.close
    expect(described_class).not_to be_connected
  end

  describe ".disconnect!" do
    it "closes the relays on the connection, then the connection, and forgets it" do
      closed = []
      relay = Object.new
      relay.define_singleton_method(:close) { |timeout:| closed << timeout }
      described_class.connection = fake.register(relay)

      expect(described_class.disconnect!(timeout: 3)).to be_nil
      expect(closed).to contain_exactly(be_between(0, 3))
      expect(transport).not_to be_open
      expect(described_class).not_to be_connected
    end

    it "does nothing when there is no connection" do
      described_class.connection = nil

      expect { 2.times { described_class.disconnect! } }.not_to raise_error
    end

    it "forgets the connection even if closing it fails" do
      transport.define_singleton_method(:close) { |**| raise "stuck" }
      described_class.connection = fake

      expect { described_class.disconnect! }.to raise_error("stuck")
      expect(described_class).not_to be_connected
    end
  end
end
