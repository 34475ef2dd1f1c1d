# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::Testing::Faults do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:relay) { AceMQ::AMQP::Patterns::OutboxRelay.new(transport, store) }

  include AceMQ::SpecSupport::Records

  def publish(routing_key = "a", **options)
    transport.publish(exchange: "shop", routing_key: routing_key, body: "x", message_id: "m", mandatory: true, **options)
  end

  # @return [Exception]
  def error_of(*arguments, **options)
    publish(*arguments, **options)
    nil
  rescue AceMQ::AMQP::PublishError => e
    e
  end

  { nack: { scope: :destination, nacked?: true }, return: { scope: :destination, unroutable?: true },
    refuse: { scope: :record, permanent?: true }, close: { scope: :connection, unknown?: true },
    timeout: { scope: :connection, unknown?: true }, block: { scope: :connection, unknown?: false } }.each do |kind, what|
    it "scripts a #{kind}, and publishes nothing then" do
      transport.fault(kind)

      expect(error_of).to have_attributes(exchange: "shop", routing_key: "a", **what)
      expect(transport.published).to be_empty
      expect(transport.heal).to be transport
      expect(error_of).to be_nil
    end
  end

  it "strikes so often, after so many, and only where it is told to" do
    transport.fault(:nack, routing_key: "a", after: 1, times: 2)
    transport.fault(:return, exchange: "billing")
    transport.fault(:close, routing_key: /\Ax\./, times: 1)

    expect(Array.new(5) { error_of&.nacked? }).to eq [nil, true, true, nil, nil]
    expect(error_of("b")).to be_nil
    expect(error_of("x.y").scope).to eq :connection
    expect(error_of("x.y")).to be_nil
  end

  it "loses a message without a word when it is not mandatory and goes nowhere" do
    transport.fault(:return)

    expect(publish(mandatory: false)).to eq "m"
    expect(transport.published).to be_empty
  end

  it "has no connection after it broke, until the next publish" do
    transport.fault(:close, times: 1)
    error_of
    expect(transport).not_to be_open
    publish

    expect(transport).to be_open
  end

  it "takes its time" do
    transport.fault(:delay, seconds: 0.05)
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    publish

    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - before).to be >= 0.05
    expect(transport.published.size).to eq 1
  end

  it "says which faults there are" do
    expect { transport.fault(:explode) }.to raise_error(ArgumentError, /no fault :explode; there are nack, return/)
  end

  it "looks to a relay as the broker's own failures do" do
    add_records(store, "1" => "declined", "2" => "refused", "3" => "fine")
    transport.fault(:nack, routing_key: "declined").fault(:refuse, routing_key: "refused", reason: "too large")
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)

    expect([store.published, store.backing_off, store.retired]).to eq [%w[3], %w[1], %w[2]]
    expect(store.row("2").error).to eq "too large"
  end

  it "charges nobody for a connection that breaks" do
    add_records(store, "1" => "a")
    transport.fault(:close, times: 1)
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::TransportError)
    expect(store.attempts.values).to eq [0]

    expect(relay.sweep).to eq 1
  end
end
