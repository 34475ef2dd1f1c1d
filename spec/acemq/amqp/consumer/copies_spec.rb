# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Consumer, "and copies of its messages", :consuming do
  let(:transport) { AceMQ::SpecSupport::Consuming::RefusingTransport.new }
  let(:telemetry) { AceMQ::AMQP::Telemetry::Registry.new }
  let(:connection) { fake_connection(telemetry: telemetry) }
  let(:ack) { AceMQ::AMQP::Ack }
  let(:told) { [] }

  before do
    allow(AceMQ::AMQP::Log).to receive(:error) { |text| told << text }
    allow(AceMQ::AMQP::Log).to receive(:info)
    # Not to wait for seconds where only the order of things matters.
    stub_const("AceMQ::AMQP::Consuming::Settling::BACKOFF", AceMQ::AMQP::RetryPolicy.fixed(2**31, 0.02))
  end

  after { connection.close(timeout: 2) }

  def policy(...)
    AceMQ::AMQP::RetryPolicy.fixed(...)
  end

  def retrying(**options)
    connection.consume("orders", **options) { ack.retry("busy") }
  end

  describe "for a retry" do
    it "is one attempt on, and everything else as it was" do
      delivery = fake({ "n" => 1 }, id: "m-1", type: "t", correlation_id: "c", first_seen: Time.at(1_700_000_000.123r), reply_to: "r",
                                    headers: { "tenant" => "acme", "x-acemq-future" => { "k" => [1, nil] }, "x-acemq-route" => "a,b" })
      retrying(retry_policy: policy(3, 0)).handle(delivery.delivery)

      copy = transport.published.last
      expect(copy).to have_attributes(exchange: "", routing_key: "orders", body: '{"n":1}', content_type: "application/json",
                                      message_id: "m-1", reply_to: "r", persistent: true, mandatory: true)
      expect(copy.headers).to eq(delivery.delivery.headers.merge("x-acemq-attempt" => 2))
    end

    it "knows who it is where the producer gave only the AMQP message id" do
      retrying(retry_policy: policy(3, 0)).handle(fake({}, message_id: "foreign").delivery)

      expect(transport.published.last).to have_attributes(message_id: "foreign", headers: include("x-acemq-id" => "foreign"))
    end

    it "is not sent on to further queues by the headers that did so once" do
      delivery = fake({}, headers: { "CC" => ["audit"], "BCC" => ["spy"], "x-delivery-count" => 4 })
      retrying(retry_policy: policy(3, 0)).handle(delivery.delivery)

      expect(transport.published.last.headers.keys & %w[CC BCC x-delivery-count]).to be_empty
    end

    it "waits in the consumer below the threshold, and occupies nobody" do
      consumer = retrying(retry_policy: policy(3, 0.2))
      first = transport.deliver("orders")
      second = transport.deliver("orders")

      expect([first, second].flat_map(&:answers)).to be_empty
      expect(consumer).to have_attributes(in_flight: 0, waiting: 2)
      expect(telemetry["acemq.consume.waiting", queue: "orders"]).to eq(2)
      eventually { expect([first.answers, second.answers]).to eq([[:ack], [:ack]]) }
      expect(transport.published_to("orders").map { |copy| copy.headers["x-acemq-attempt"] }).to eq([2, 2])
      eventually { expect(telemetry["acemq.consume.waiting", queue: "orders"]).to eq(0) }
    end

    it "lets a short wait pass a long one" do
      consumer = connection.consume("orders") { |message| ack.in_progress(message.attempt == 1 ? 30 : 0.05) }
      slow = transport.deliver("orders", {}, attempt: 1)
      quick = transport.deliver("orders", {}, attempt: 2)

      eventually { expect(quick).to be_acked }
      expect(slow).not_to be_settled
      expect(consumer.waiting).to eq(1)
    end

    it "waits in the broker from the threshold on, without jitter and without the broker's record of deaths" do
      consumer = retrying(retry_policy: policy(3, 40).with_jitter(0.5))
      delivery = fake({}, headers: { "x-death" => [{ "queue" => "orders", "reason" => "expired" }] })
      consumer.handle(delivery.delivery)

      expect(transport.published.last).to have_attributes(routing_key: "orders.retry.40s", mandatory: true)
      expect(transport.published.last.headers).not_to have_key("x-death")
      expect(delivery).to be_acked
    end

    it "waits in the broker for a fraction of a second too, when told to" do
      consumer = retrying(retry_policy: policy(3, 0.5), retry_threshold: 0.1)
      consumer.handle(fake.delivery)

      expect(transport.published.last.routing_key).to eq("orders.retry.500ms")
      expect(consumer.ladder.queues).to eq(["orders.retry.500ms"])
    end

    it "never waits in the broker with a threshold of 0" do
      expect(retrying(retry_policy: policy(3, 40), retry_threshold: 0).ladder).to be_empty
    end

    it "puts a rung back that has gone, and counts it" do
      consumer = retrying(retry_policy: policy(3, 40))
      transport.missing!("orders.retry.40s")
      delivery = fake
      consumer.handle(delivery.delivery)

      expect(transport.published_to("orders.retry.40s").size).to eq(1)
      expect(delivery).to be_acked
      expect(telemetry["acemq.retry.rung.missing", queue: "orders"]).to eq(1)
    end

    it "waits in the consumer when the rung has gone for good" do
      retrying(retry_policy: policy(3, 0.1), retry_threshold: 0.1)
      transport.missing!("orders.retry.100ms")
      transport.define_singleton_method(:declare_queue) { |*| raise AceMQ::AMQP::TransportError, "access refused" }
      delivery = transport.deliver("orders")

      expect(delivery).not_to be_settled
      eventually { expect(delivery).to be_acked }
      expect(transport.published.map(&:routing_key)).to eq(["orders"])
    end

    it "waits in the consumer when somebody declared the rung otherwise" do
      allow(AceMQ::AMQP::Log).to receive(:warn) { |text| told << text }
      transport.declare_queue("orders")
      transport.singleton_class.prepend(Module.new do
        def declare_queue(name, **options)
          raise AceMQ::AMQP::TransportError, "inequivalent arg 'x-message-ttl'" if name.include?(".retry.")

          super
        end
      end)
      delivery = retrying(retry_policy: policy(3, 0.1), retry_threshold: 0.1) && transport.deliver("orders")

      eventually { expect(delivery).to be_acked }
      expect(transport.published.map(&:routing_key)).to eq(["orders"])
      expect(told).to contain_exactly(/inequivalent arg.*retries of 0.1 s wait in the consumer/)
      expect(telemetry["acemq.retry.rung.missing"]).to eq(1)
    end
  end

  describe "that cannot be placed" do
    let(:nacked) { AceMQ::AMQP::PublishError.new("nacked by the queue", nacked: true, scope: :destination) }
    let(:paused) { AceMQ::AMQP::PublishingPausedError.new("low on memory") }

    it "keeps the message until it can" do
      transport.refusals["orders.dlq"] = nacked
      consumer = connection.consume("orders") { ack.reject("bad") }
      delivery = transport.deliver("orders")

      eventually { expect(transport.refused).to be > 3 }
      expect(delivery).not_to be_settled
      transport.refusals.clear
      eventually { expect(delivery.answers).to eq([:ack]) }
      expect(transport.published_to("orders.dlq").size).to eq(1)
      expect(consumer.waiting).to eq(0)
    end

    it "counts each try, and tells of each change once" do
      transport.refusals["orders.dlq"] = nacked
      connection.consume("orders") { ack.reject("bad") }
      2.times { transport.deliver("orders") }
      eventually { expect(telemetry["acemq.messages.set.aside.failed", queue: "orders", target: "orders.dlq"]).to be > 4 }
      transport.refusals["orders.dlq"] = paused
      refused = transport.refused
      eventually { expect(transport.refused).to be > refused + 4 }

      expect(told).to match([/cannot be put into orders.dlq; .*nacked by the queue/, /PublishingPausedError: low on memory/])
    end

    it "waits out an alarm, whatever it is about" do
      transport.blocked_reason = "memory"
      retry_delivery = retrying(retry_policy: policy(3, 0)) && transport.deliver("orders")
      in_progress = connection.consume("busy") { ack.in_progress(0) } && transport.deliver("busy")
      parked = connection.consume("odd") { ack.park } && transport.deliver("odd")
      eventually { expect(telemetry["acemq.messages.set.aside.failed"]).to be > 5 }

      expect([retry_delivery, in_progress, parked].flat_map(&:answers)).to be_empty
      transport.blocked_reason = nil
      eventually { expect([retry_delivery, in_progress, parked].map(&:answers)).to all(eq([:ack])) }
    end

    it "puts a dead-letter queue back that has gone" do
      consumer = connection.consume("orders") { ack.reject("bad") }
      transport.missing!("orders.dlq")
      delivery = fake
      consumer.handle(delivery.delivery)

      expect(delivery).to be_acked
      expect(transport.published_to("orders.dlq").size).to eq(1)
      expect(transport.queue_exists?("orders.dlq")).to be(true)
    end

    it "leaves out what does not fit the frame" do
      room = Class.new(AceMQ::SpecSupport::Consuming::RefusingTransport) do
        def publish(headers:, **message)
          size = AceMQ::AMQP::Headers.wire_size(headers)
          raise AceMQ::AMQP::PublishError.new("#{size} bytes", permanent: true, scope: :record) if size > 1_000

          super
        end
      end.new
      consumer = AceMQ::AMQP::Connection.new(transport: room).consume("orders") { ack.reject("x" * 3_000) }
      delivery = fake({}, headers: { "large" => "y" * 700 })
      consumer.handle(delivery.delivery)

      expect(delivery).to be_acked
      expect(room.published.last.headers["large"].size).to eq(700)
      expect(room.published.last.headers["x-acemq-error"].bytesize).to eq(200)
    end

    it "is given up when the broker hands the message out again" do
      source = fake_source
      transport.refusals["orders.dlq"] = nacked
      consumer = connection.consume("orders") { ack.reject("bad") }
      delivery = transport.deliver("orders", {}, source: source)
      eventually { expect(transport.refused).to be > 1 }
      source.gone = true
      transport.refusals.clear

      eventually { expect(consumer.waiting).to eq(0) }
      expect(transport.published).to be_empty
      expect(delivery).not_to be_settled
    end

    it "is given up before its time has come, when the broker hands the message out again" do
      source = fake_source
      consumer = retrying(retry_policy: policy(3, 0.05))
      delivery = transport.deliver("orders", {}, source: source)
      source.gone = true

      eventually { expect(consumer.waiting).to eq(0) }
      expect(transport.published).to be_empty
      expect(delivery).not_to be_settled
    end
  end

  it "is made by the transport, which keeps what nobody has read, where it can" do
    copies = []
    transport.define_singleton_method(:publish_copy) { |delivery, **options| copies << [delivery, options] }
    delivery = fake({}, source: fake_source, id: "m-1", headers: { "CC" => ["audit"] })
    retrying(retry_policy: policy(3, 0)).handle(delivery.delivery)

    expect(copies.first.first).to be(delivery.delivery)
    expect(copies.first.last).to include(routing_key: "orders", mandatory: true, message_id: "m-1",
                                         headers: include("x-acemq-attempt" => 2, "x-acemq-id" => "m-1", "CC" => nil))
    expect(delivery).to be_acked
    expect(transport.published).to be_empty
  end

  describe "while somebody else is at it" do
    it "comes back with its attempt unchanged, and occupies nobody" do
      consumer = connection.consume("orders") { ack.in_progress(0.1) }
      delivery = transport.deliver("orders", {}, attempt: 3)

      expect(delivery).not_to be_settled
      expect(consumer).to have_attributes(in_flight: 0, waiting: 1)
      eventually { expect(delivery).to be_acked }
      expect(transport.published_to("orders").map { |copy| copy.headers["x-acemq-attempt"] }).to eq([3])
    end
  end
end
