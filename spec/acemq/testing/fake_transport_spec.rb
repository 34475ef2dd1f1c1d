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

  it "takes back what an inbox leaves unsettled" do
    4.times { |n| transport.publish(exchange: "", routing_key: "q", body: n.to_s, message_id: n.to_s) }
    transport.inbox do |inbox|
      pulled = Array.new(4) { inbox.pull("q") }
      expect(inbox.pull("q")).to be_nil
      pulled[1].ack
      pulled[2].nack
    end

    expect(Array.new(3) { transport.pull("q")&.body }).to eq(["0", "3", nil])
  end

  describe "subscriptions" do
    let(:received) { [] }

    def subscribe(queue = "orders", **options)
      transport.subscribe(queue, prefetch: 5, concurrency: 1, tag: "t", **options) { |delivery| received << delivery }
    end

    it "are remembered with their options" do
      subscription = subscribe(arguments: { "x-priority" => 1 })

      expect(transport.subscribed).to eq([subscription])
      expect(transport.subscribed.first).to have_attributes(queue: "orders", open?: true, subscription: subscription)
      expect(transport.options_for("orders")).to eq(prefetch: 5, concurrency: 1, tag: "t", arguments: { "x-priority" => 1 })
      expect(transport.options_for("other")).to be_nil
    end

    it "are handed what is delivered, and nothing that is published" do
      subscribe
      publish("orders")
      fake = transport.deliver("orders", { "n" => 1 }, id: "m-1", attempt: 3, headers: { "tenant" => "acme" }, redelivered: true)

      expect(received).to eq([fake.delivery])
      expect(fake.delivery).to have_attributes(body: '{"n":1}', content_type: "application/json", routing_key: "orders",
                                               redelivered: true, source: nil)
      expect(fake.delivery.headers).to include("x-acemq-id" => "m-1", "x-acemq-attempt" => 3, "x-acemq-type" => "orders",
                                               "tenant" => "acme")
    end

    it "note how a delivery was settled" do
      subscribe
      fakes = Array.new(4) { transport.deliver("orders") }
      fakes[0].delivery.ack
      fakes[1].delivery.nack(requeue: true)
      fakes[2].delivery.nack

      expect(fakes.map { |fake| [fake.acked?, fake.requeued?, fake.dropped?, fake.settled?] })
        .to eq([[true, false, false, true], [false, true, false, true], [false, false, true, true], [false] * 4])
    end

    it "end" do
      subscriptions = Array.new(3) { subscribe }
      subscriptions[0].stop
      subscriptions[1].close(timeout: 1)
      subscriptions[2].cancel

      expect(subscriptions.map(&:open?)).to eq([false] * 3)
      expect { transport.deliver("orders") }.to raise_error(ArgumentError, /nobody has subscribed to "orders"/)
    end

    it "are refused for a queue that was taken away" do
      transport.missing!("orders")

      expect { subscribe }.to raise_error(AceMQ::AMQP::TransportError, /no queue "orders"/)
    end
  end
end
