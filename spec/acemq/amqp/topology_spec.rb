# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::AMQP::Topology do
  subject(:topology) { described_class.new }

  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:connection) { AceMQ::AMQP::Connection.new(transport: transport) }

  it "declares exchanges, then queues, then bindings" do
    calls = []
    transport.singleton_class.prepend(Module.new do
      define_method(:declare_exchange) { |name, **options| calls << name and super(name, **options) }
      define_method(:declare_queue) { |name, **options| calls << name and super(name, **options) }
      define_method(:bind) { |queue:, **options| calls << "bind #{queue}" and super(queue: queue, **options) }
    end)
    topology.binding("shop.payments", "shop", "order.*").queue("shop.payments").exchange("shop", :topic)

    connection.apply(topology)

    expect(calls).to eq(["shop", "shop.payments", "bind shop.payments"])
    expect(transport.bindings).to eq([{ queue: "shop.payments", exchange: "shop", routing_key: "order.*" }])
  end

  it "says what it would declare" do
    topology.exchange("shop", :topic).queue("orders", dead_letter: true, arguments: { "x-max-length" => 10 })
            .queue("tmp", durable: false, auto_delete: true, exclusive: true)
            .retry_ladder("orders", AceMQ::AMQP::RetryPolicy.fixed(2, 60)).binding("orders", "shop", "order.*")

    expect(topology.plan).to eq(<<~PLAN.lines(chomp: true))
      exchange shop (topic, durable)
      exchange acemq.dlx (direct, durable)
      exchange acemq.retry (direct, durable)
      queue orders (quorum, durable, x-max-length=10, x-dead-letter-exchange=acemq.dlx, x-dead-letter-routing-key=orders.dlq)
      queue orders.dlq (classic, durable)
      queue tmp (classic, transient, auto-delete, exclusive)
      queue orders.retry.1m (classic, durable, x-message-ttl=60000, x-dead-letter-exchange=acemq.retry, x-dead-letter-routing-key=orders)
      bind orders.dlq to acemq.dlx for "orders.dlq"
      bind orders to acemq.retry for "orders"
      bind orders to shop for "order.*"
    PLAN
    expect(topology.to_s).to eq(topology.plan.join("\n"))
  end

  it "takes another exchange for dead letters, and the same one for retries" do
    other = described_class.new(dead_letter_exchange: "dead").queue("q", dead_letter: true,
                                                                         retry_policy: AceMQ::AMQP::RetryPolicy.fixed(2, 60))

    expect(other.exchanges.map(&:name)).to eq(%w[dead acemq.retry])
    expect(other.queues.first.arguments).to include("x-dead-letter-exchange" => "dead")
  end

  it "leaves to a queue what is said of it, whether before or after it was implied" do
    topology.dead_letter_queue("a").queue("a.dlq", queue_type: :classic, arguments: { "x-max-length" => 5 })
            .queue("b.dlq", queue_type: :classic, arguments: { "x-max-length" => 6 }).dead_letter_queue("b")

    expect(topology.problems).to be_empty
    expect(topology.queues.map { |queue| [queue.name, queue.arguments] })
      .to eq([["a.dlq", { "x-max-length" => 5 }], ["b.dlq", { "x-max-length" => 6 }]])
  end

  {
    "blank names" => [->(t) { t.exchange(" ", :topic).queue("") }, ["an exchange has no name", "a queue has no name"]],
    "duplicates" => [->(t) { t.queue("q").queue("q").exchange("e", :topic).exchange("e", :direct) },
                     ["the exchange e is declared 2 times", "the queue q is declared 2 times"]],
    "an exchange without a kind" => [->(t) { t.exchange("e", nil) }, ["the exchange e has no kind"]],
    "a kind that no broker has" => [->(t) { t.exchange("first", :direct).exchange("e", :topik) }, [/"e" cannot be of kind "topik"/]],
    "names and keys that AMQP cannot carry" => [
      ->(t) { t.queue("first").queue("q" * 256).exchange("e\xFF", :topic).binding("first", "amq.topic", "k" * 256) },
      ["exchange is not valid UTF-8 text", /queue is 256 bytes long/, /routing key of first is 256 bytes long/]
    ],
    "a name that is too long with the suffix of its dead letters" => [
      ->(t) { t.queue("q" * 252, dead_letter: true) }, [/queue is 256 bytes long/, /a routing key of q+\.dlq is 256/]
    ],
    "arguments that AMQP cannot carry" => [
      ->(t) { t.exchange("e", :topic, arguments: { "x-any" => Object.new }).queue("q", arguments: { "x-any" => Object.new }) },
      [/\Athe exchange e: header x-any/, /\Athe queue q: header x-any/]
    ],
    "a queue type that its flags rule out" => [->(t) { t.queue("q", queue_type: :quorum, durable: false) }, [/q.*quorum/]],
    "bindings of what is not declared" => [->(t) { t.binding("q", "e") },
                                           ["the queue q is bound and not declared", /bound to the exchange e, which is not declared/]],
    "a binding to the default exchange" => [->(t) { t.queue("q").binding("q", "") }, [/the default exchange/]]
  }.each do |what, (build, problems)|
    it "finds #{what}, and declares nothing" do
      build.call(topology)

      expect(topology.problems).to match(problems)
      expect { connection.apply(topology) }.to raise_error(AceMQ::AMQP::TopologyError, /cannot be declared/)
      expect([transport.declared_exchanges, transport.declared_queues]).to all(be_empty)
    end
  end

  it "knows that the broker has exchanges of its own" do
    expect(topology.queue("q").binding("q", "amq.topic", "#").problems).to be_empty
    expect(topology.exchange("later", "x-delayed-message").binding("q", "later").problems).to be_empty
  end
end
