# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Telemetry, :consuming do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:registry) { AceMQ::AMQP::Telemetry::Registry.new }
  let(:connection) { fake_connection(telemetry: registry) }
  let(:ack) { AceMQ::AMQP::Ack }

  it "counts what is published, by exchange and outcome" do
    transport.missing!("gone")
    connection.publish({}, to: "k", exchange: "shop")
    connection.publish_all([1, 2], to: "q")
    expect { connection.publish({}, to: "gone", mandatory: true) }.to raise_error(AceMQ::AMQP::PublishError)
    transport.blocked_reason = "memory"
    expect { connection.publish({}, to: "q") }.to raise_error(AceMQ::AMQP::PublishingPausedError)

    expect(registry.counts["acemq.publish.total"])
      .to eq({ exchange: "shop", outcome: "confirmed" } => 1, { exchange: "", outcome: "confirmed" } => 2,
             { exchange: "", outcome: "unroutable" } => 1, { exchange: "", outcome: "refused" } => 1)
  end

  it "counts every delivery once, and what is retried and set aside" do
    answers = { "ok" => ack.accept, "retry" => ack.retry, "reject" => ack.reject, "park" => ack.park, "busy" => ack.in_progress(0),
                "last" => ack.retry }
    consumer = connection.consume("orders", retry_policy: AceMQ::AMQP::RetryPolicy.fixed(2, 0)) { |m| answers[m.payload] }
    answers.each_key { |name| consumer.handle(fake(%("#{name}"), attempt: name == "last" ? 2 : 1).delivery) }

    expect(registry.counts["acemq.consume.total"].transform_keys { |labels| labels[:outcome] })
      .to eq("acked" => 1, "retried" => 1, "rejected" => 1, "parked" => 1, "in_progress" => 1, "dead_lettered" => 1)
    expect(registry.counts["acemq.messages.retried.total"]).to eq({ queue: "orders", outcome: "retried" } => 1)
    expect(registry.counts["acemq.messages.dead.lettered.total"])
      .to eq({ queue: "orders", outcome: "dead_lettered" } => 2, { queue: "orders", outcome: "parked" } => 1)
    expect(registry["acemq.consume.duration", queue: "orders"]).to eq(6)
    expect(registry.timings["acemq.consume.attempts"][{ queue: "orders" }]).to have_attributes(count: 6, sum: 7.0, max: 2)
  end

  it "shows how many handlers run" do
    running = []
    connection.consume("orders") { running << registry["acemq.consume.in.flight", queue: "orders"] and ack.accept }
    2.times { transport.deliver("orders") }

    expect(running).to eq([1, 1])
    expect(registry["acemq.consume.in.flight", queue: "orders"]).to eq(0)
  end

  describe AceMQ::AMQP::Telemetry::Registry do
    subject(:registry) { described_class.new }

    it "answers one number by metric and labels" do
      registry.count("c", queue: "a", outcome: "x")
      registry.count("c", 2, queue: "b", outcome: "x")
      registry.gauge("g", 5)
      registry.observe("t", 0.5)

      expect([registry["c"], registry["c", queue: "b"], registry["c", outcome: "y"], registry["g"], registry["t"], registry["?"]])
        .to eq([3, 2, 0, 5, 1, 0])
    end

    it "hands out copies" do
      registry.count("c")
      registry.observe("t", 1)
      registry.counts["c"].clear
      registry.timings["t"][{}].buckets.clear

      expect(registry["c"]).to eq(1)
      expect(registry.timings["t"][{}].buckets).not_to be_empty
    end

    it "is read by Prometheus" do
      registry.count("acemq.publish.total", exchange: %(a"b\\c\n), outcome: "confirmed")
      registry.gauge("acemq.consume.in.flight", 2, queue: "q")
      registry.observe("acemq.request.duration", 0.2, "routing.key": "k")

      expect(registry.to_prometheus).to eq(<<~'TEXT')
        # TYPE acemq_publish_total counter
        acemq_publish_total{exchange="a\"b\\c\n",outcome="confirmed"} 1
        # TYPE acemq_consume_in_flight gauge
        acemq_consume_in_flight{queue="q"} 2
        # TYPE acemq_request_duration histogram
        acemq_request_duration_bucket{routing_key="k",le="0.005"} 0
        acemq_request_duration_bucket{routing_key="k",le="0.01"} 0
        acemq_request_duration_bucket{routing_key="k",le="0.025"} 0
        acemq_request_duration_bucket{routing_key="k",le="0.05"} 0
        acemq_request_duration_bucket{routing_key="k",le="0.1"} 0
        acemq_request_duration_bucket{routing_key="k",le="0.25"} 1
        acemq_request_duration_bucket{routing_key="k",le="0.5"} 1
        acemq_request_duration_bucket{routing_key="k",le="1"} 1
        acemq_request_duration_bucket{routing_key="k",le="2.5"} 1
        acemq_request_duration_bucket{routing_key="k",le="5"} 1
        acemq_request_duration_bucket{routing_key="k",le="10"} 1
        acemq_request_duration_bucket{routing_key="k",le="30"} 1
        acemq_request_duration_bucket{routing_key="k",le="60"} 1
        acemq_request_duration_bucket{routing_key="k",le="+Inf"} 1
        acemq_request_duration_sum{routing_key="k"} 0.2
        acemq_request_duration_count{routing_key="k"} 1
      TEXT
    end

    it "keeps count when several threads tell" do
      Array.new(4) { Thread.new { 250.times { registry.count("c") } } }.each(&:join)

      expect(registry["c"]).to eq(1_000)
    end
  end

  describe "an observer that fails" do
    it "disturbs nothing, and is told of once per metric" do
      observer = Class.new(described_class::None) { def count(*) = raise(IOError, "no") }.new
      failing = fake_connection(telemetry: observer)

      expect { 3.times { failing.publish({}, to: "q") } }
        .to output(/\A[^\n]*does not take acemq.publish.total: IOError: no\n\z/).to_stderr
      expect(failing.telemetry).to be(observer)
    end

    it "is refused when it is none" do
      expect { fake_connection(telemetry: Object.new) }.to raise_error(ArgumentError, /Object is no observer: .*count, observe, gauge/)
    end
  end

  it "looks away unless told to look" do
    expect(fake_connection.telemetry).to be_a(described_class::None)
  end
end
