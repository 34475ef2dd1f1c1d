# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::Testing::FakeTransport do
  subject(:transport) { described_class.new }

  def publish(routing_key, **options)
    transport.publish(exchange: "", routing_key: routing_key, body: "x", message_id: "m", **options)
  end

  it "remembers what was published, and where to" do
    expect(publish("q", headers: { "a" => 1 })).to eq("m")

    expect(transport.published.map(&:routing_key)).to eq(["q"])
    expect(transport.published_to("q").first.headers).to eq("a" => 1)
    expect(transport.published_to("other")).to be_empty
  end

  it "keeps count when several threads publish" do
    Array.new(4) { Thread.new { 50.times { publish("q") } } }.each(&:join)

    expect(transport.published.size).to eq(200)
  end

  it "returns a mandatory message to a queue that is missing" do
    transport.missing!("gone")

    expect { publish("gone", mandatory: true) }
      .to raise_error(AceMQ::AMQP::PublishError) { |error| expect(error).to be_unroutable }
    expect { publish("gone") }.not_to raise_error
    expect(transport.queue_exists?("gone")).to be(false)
  end

  it "declines while it is blocked" do
    blocked = described_class.new(blocked_reason: "memory")
    results = blocked.publish_all([{ exchange: "", routing_key: "q", body: "x" }])

    expect(results).to contain_exactly(an_instance_of(AceMQ::AMQP::PublishingPausedError))
    expect(blocked.published).to be_empty
  end

  it "hands a delivery out again that was given back" do
    publish("q")
    transport.pull("q").nack(requeue: true)

    expect(transport.pull("q").message_id).to eq("m")
    expect(transport.message_count("q")).to eq(0)
  end
end
