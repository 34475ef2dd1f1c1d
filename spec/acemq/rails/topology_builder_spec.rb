# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing"

RSpec.describe AceMQ::Rails::TopologyBuilder do
  let(:settings) do
    { "exchanges" => [{ "name" => "shop-events" }, { "name" => "audit", "type" => "fanout", "auto-delete" => true }],
      "queues" => [{ "name" => "shop.payments", "dead_letter" => true,
                     "retries" => { "max_attempts" => 3, "initial_delay" => 60, "broker_wait_threshold" => 10 } },
                   { "name" => "shop.log", "type" => "classic", "durable" => false, "arguments" => { "x-max-length" => 9 } }],
      "bindings" => [{ "queue" => "shop.payments", "exchange" => "shop-events", "routing_key" => "order.#" },
                     { "queue" => "shop.log", "exchange" => "audit" }] }
  end

  def declared(settings, **options)
    transport = AceMQ::Testing::FakeTransport.new
    described_class.new(settings, **options).build.apply(AceMQ::AMQP::Connection.new(transport: transport))
    transport
  end

  it "makes exchanges, topic ones unless said otherwise" do
    exchanges = declared(settings).declared_exchanges.to_h { |exchange| [exchange.name, exchange.options] }

    expect(exchanges["shop-events"]).to include(kind: "topic", durable: true, auto_delete: false)
    expect(exchanges["audit"]).to include(kind: "fanout", auto_delete: true)
  end

  it "makes queues, with what they need for dead letters and retries" do
    queues = declared(settings).declared_queues.to_h { |queue| [queue.name, queue.options] }

    expect(queues["shop.payments"]).to include(
      queue_type: :quorum, arguments: hash_including("x-dead-letter-exchange" => "acemq.dlx")
    )
    expect(queues["shop.log"]).to include(queue_type: :classic, durable: false, arguments: { "x-max-length" => 9 })
    expect(queues).to include("shop.payments.dlq", "shop.payments.retry.1m", "shop.payments.retry.2m")
  end

  it "makes bindings" do
    expect(declared(settings).bindings).to include(
      { queue: "shop.payments", exchange: "shop-events", routing_key: "order.#" },
      { queue: "shop.log", exchange: "audit", routing_key: "" }
    )
  end

  it "starts a queue's retries from the settings of consumers" do
    defaults = AceMQ::Rails::ConsumerSettings.new(initial_delay: 60, max_delay: 60, prefetch: 3)
    queues = [{ name: "q", retries: { max_attempts: 4 } }]

    expect(declared({ queues: queues }, defaults: defaults).declared_queues.map(&:name))
      .to contain_exactly("q", "q.retry.1m")
  end

  {
    "a list that does not exist" => [{ exchange: [] }, /config\.acemq\.topology has no exchange; there are exchanges, /],
    "a list that is none" => [{ queues: { name: "q" } }, /topology\.queues must be a list, not Hash/],
    "an entry that is none" => [{ queues: ["q"] }, /topology\.queues must be named values, not "q"/],
    "an entry's setting that does not exist" => [{ queues: [{ name: "q", durible: true }] }, /queues has no durible; there are/],
    "a retry setting that does not exist" => [{ queues: [{ name: "q", retries: { attempts: 3 } }] },
                                              /queues\.retries has no attempts; its settings are max_attempts/],
    "a retry setting that cannot be right" => [{ queues: [{ name: "q", retries: { max_attempts: 3, initial_delay: "soon" } }] },
                                               /retries: initial_delay/]
  }.each do |what, (settings, message)|
    it "refuses #{what}" do
      expect { described_class.new(settings).build }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    end
  end
end
