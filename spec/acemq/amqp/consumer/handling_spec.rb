# frozen_string_literal: true

require "open3"

RSpec.describe AceMQ::AMQP::Consumer, "and its handler", :consuming do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:connection) { fake_connection }
  let(:ack) { AceMQ::AMQP::Ack }

  def consume(**options, &handler)
    connection.consume("orders", **options, &handler)
  end

  # What a handler's answer comes to: how the delivery was settled, and where its copy went with which error.
  def outcome(delivery = fake, **options, &handler)
    settlement = consume(**options, &handler).handle(delivery.delivery)
    copy = transport.published.last
    [settlement.outcome, delivery.answers, copy&.routing_key, copy&.headers&.fetch("x-acemq-error", nil)]
  end

  it "is given the message" do
    seen = nil
    consume { |message| (seen = message) && ack.accept }
    transport.deliver("orders", { "n" => 1 }, id: "m-1", type: "order.placed", attempt: 2, redelivered: true, reply_to: "r",
                                              headers: { "tenant" => "acme" })

    expect(seen).to have_attributes(payload: { "n" => 1 }, id: "m-1", attempt: 2, redelivered?: true, routing_key: "orders",
                                    content_type: "application/json", body: '{"n":1}', reply_to: "r")
    expect(seen.envelope).to have_attributes(type: "order.placed", headers: { "tenant" => "acme" })
  end

  it "knows a message without an id by the AMQP message id, at every delivery" do
    ids = []
    consume { |message| ids << message.id && ack.accept }
    2.times { transport.deliver("orders", {}, message_id: "foreign-1") }

    expect(ids).to eq(%w[foreign-1 foreign-1])
  end

  it "accepts" do
    expect(outcome { ack.accept }).to eq(["acked", [:ack], nil, nil])
  end

  it "rejects to the dead-letter queue" do
    expect(outcome { ack.reject("no such order") })
      .to eq(["rejected", [:ack], "orders.dlq", "rejected by the handler: no such order"])
  end

  it "parks" do
    expect(outcome { ack.park }).to eq(["parked", [:ack], "orders.parked", "parked by the handler: no reason given"])
  end

  it "rejects what raises a FatalError" do
    expect(outcome { raise AceMQ::AMQP::FatalError, "never" })
      .to eq(["rejected", [:ack], "orders.dlq", "rejected by the handler: AceMQ::AMQP::FatalError: never"])
  end

  it "gives up once the attempts are used up" do
    expect(outcome { raise IOError, "down" })
      .to eq(["dead_lettered", [:ack], "orders.dlq", "gave up after 1 attempts: IOError: down"])
  end

  it "gives up on a message that is too old" do
    policy = AceMQ::AMQP::RetryPolicy.fixed(5, 0).give_up_after(60)
    old = fake({}, first_seen: Time.now - 61)

    expect(outcome(old, retry_policy: policy) { ack.retry("busy") })
      .to eq(["dead_lettered", [:ack], "orders.dlq", "gave up on a message older than 60.0 seconds: busy"])
  end

  it "gives up at once where a retry cannot help" do
    policy = AceMQ::AMQP::RetryPolicy.fixed(5, 0)

    expect(outcome(retry_policy: policy) { ack.retry(AceMQ::AMQP::FatalError.new("never")) })
      .to eq(["dead_lettered", [:ack], "orders.dlq", "retrying cannot help: AceMQ::AMQP::FatalError: never"])
  end

  it "rejects an answer that is none, and says of which class it was" do
    expect(outcome { nil }).to match(["rejected", [:ack], "orders.dlq", /rejected by the handler: .*returned NilClass instead of an Ack/])
  end

  it "parks what cannot be decoded, without asking the handler" do
    called = false

    expect(outcome(fake("{not json")) { called = true })
      .to match(["parked", [:ack], "orders.parked", /\Acould not be decoded: /])
    expect(called).to be(false)
  end

  it "takes a DecodeError of the handler itself for its rejection" do
    expect(outcome { raise AceMQ::AMQP::DecodeError, "inner" }).to start_with("rejected", [:ack], "orders.dlq")
  end

  [NotImplementedError, LoadError, SystemStackError, Class.new(Exception)].each do |error| # rubocop:disable Lint/InheritException
    it "takes #{error.name || "an exception of no known kind"} for a failure as any other" do
      expect(outcome { raise error, "no" }).to match(["dead_lettered", [:ack], "orders.dlq", /gave up after 1 attempts: .*no/])
    end
  end

  ["", "x"].each do |odd|
    it "cuts the error between characters, and leaves the message as it was (#{odd.size} bytes before them)" do
      delivery = fake({ "n" => 1 })
      text = outcome(delivery) { ack.reject("#{odd}#{"é" * 10_000}") }.last

      expect(text.bytesize).to be_between(4_090, 4_096)
      expect(text).to be_valid_encoding.and start_with("rejected by the handler: #{odd}é").and end_with("é...")
      expect(transport.published.last.body).to eq('{"n":1}')
    end
  end

  it "carries an error of any bytes" do
    error = Class.new(StandardError) { def message = raise("no message either") }

    expect(outcome { ack.reject("a\xFFb") }.last).to eq("rejected by the handler: a\uFFFDb")
    expect(outcome { ack.reject("caf\xE9".dup.force_encoding("ISO-8859-1")) }.last).to eq("rejected by the handler: café")
    expect(outcome { raise error }.last).to end_with("(its message cannot be read)")
  end

  describe "codecs" do
    let(:body_only) do
      Class.new do
        def content_type = "x/y"
        def encode(payload) = payload
        def decode(body) = "only #{body}"
        def can_decode?(_type) = true
      end.new
    end
    let(:with_type) do
      Class.new do
        def content_type = "x/y"
        def encode(payload) = payload
        def decode(*arguments) = arguments
        def can_decode?(_type) = true
      end.new
    end

    it "are given the body, and the content type if they can take it" do
      payloads = []
      consume(codec: body_only) { |message| payloads << message.payload && ack.accept }.handle(fake("b").delivery)
      consume(codec: with_type) { |message| payloads << message.payload && ack.accept }
        .handle(fake("b", content_type: "text/csv").delivery)

      expect(payloads).to eq(["only b", ["b", "text/csv"]])
    end

    it "are retried when they fail as nobody foresaw" do
      with_type.define_singleton_method(:decode) { |*| raise "bug" }

      expect(outcome(fake("b"), codec: with_type) { ack.accept })
        .to eq(["dead_lettered", [:ack], "orders.dlq", "gave up after 1 attempts: RuntimeError: bug"])
    end
  end

  describe "attempts that make no sense" do
    { "-5" => -5, "200 digits" => "9" * 200, "none" => nil, "a table" => { "a" => 1 } }.each do |what, value|
      it "are taken for the first (#{what})" do
        headers = value.nil? ? {} : { "x-acemq-attempt" => value }
        policy = AceMQ::AMQP::RetryPolicy.fixed(4, 0)
        consume(retry_policy: policy) { ack.retry }.handle(fake({}, headers: headers).delivery)

        expect(transport.published.last.headers["x-acemq-attempt"]).to eq(2)
      end
    end

    it "are read from digits, as some libraries write them" do
      consume(retry_policy: AceMQ::AMQP::RetryPolicy.fixed(4, 0)) { ack.retry }
        .handle(fake({}, headers: { "x-acemq-attempt" => "2" }).delivery)

      expect(transport.published.last.headers["x-acemq-attempt"]).to eq(3)
    end

    it "are bounded at the end of what an integer holds" do
      expect(outcome(fake({}, headers: { "x-acemq-attempt" => (2**63) - 1 })) { ack.retry })
        .to start_with("dead_lettered", [:ack], "orders.dlq")
    end
  end

  it "handles a message whose route is nothing that a library has written" do
    delivery = fake({}, headers: { "x-acemq-route" => Object.new, "x-acemq-id" => "m-9" })
    seen = nil
    consume { |message| (seen = message.id) && ack.accept }.handle(delivery.delivery)

    expect(seen).to eq("m-9")
  end

  it "handles a message of which nothing is text" do
    expect(outcome(fake({}, queue: "\xFF", message_id: "\xFE")) { ack.accept }).to start_with("acked", [:ack])
  end

  describe "that is cut off" do
    let(:telemetry) { AceMQ::AMQP::Telemetry::Registry.new }
    let(:connection) { fake_connection(telemetry: telemetry) }

    it "gives the message back when it throws past us" do
      consumer = consume { throw :out }
      delivery = fake

      catch(:out) { consumer.handle(delivery.delivery) }

      expect(delivery.answers).to eq([:requeue])
      expect(consumer.in_flight).to eq(0)
      expect(telemetry["acemq.consume.total", outcome: "requeued"]).to eq(1)
    end

    it "retries what it throws to nobody" do
      expect(outcome { throw :nobody }).to match(["dead_lettered", [:ack], "orders.dlq", /uncaught throw :nobody/])
    end

    it "gives the message back when its thread is killed" do
      consumer = consume { Thread.current.kill }
      delivery = fake
      Thread.new { consumer.handle(delivery.delivery) }.join

      expect(delivery.answers).to eq([:requeue])
      expect(consumer.in_flight).to eq(0)
    end

    [SystemExit, Interrupt, NoMemoryError].each do |error|
      it "gives the message back, and passes #{error} on" do
        consumer = consume { raise error, "end" }
        delivery = fake

        expect { consumer.handle(delivery.delivery) }.to raise_error(error)
        expect(delivery.answers).to eq([:requeue])
        expect(transport.published).to be_empty
      end
    end

    # In a process of its own, because it is the one that ends.
    it "ends the process from whichever thread it runs on" do
      script = <<~RUBY
        require "acemq_native"
        require "acemq/testing"
        transport = AceMQ::Testing::FakeTransport.new
        AceMQ::AMQP::Connection.new(transport: transport).consume("orders") { exit 7 }
        begin
          Thread.new { transport.deliver("orders") }.join
          sleep 20
        ensure
          puts "ended"
        end
      RUBY
      output, status = Open3.capture2e(RbConfig.ruby, "-I", File.expand_path("../../../../lib", __dir__), "-e", script)

      expect(output).to include("ended", "raised SystemExit")
      expect(status.exitstatus).to eq(7)
    end
  end

  describe "#consume" do
    it "subscribes with what was asked for, or the connection's own" do
      other = fake_connection(prefetch: 7, retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 1))
      consumer = other.consume("orders") { ack.accept }

      expect(transport.options_for("orders")).to include(prefetch: 7, concurrency: 1, arguments: {}, tag: /\Aacemq-orders-\h{16}\z/)
      expect(consumer).to have_attributes(queue: "orders", retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 1), running?: true,
                                          codec: other.codec, in_flight: 0)
      consume(prefetch: 6, concurrency: 4, tag: "mine", arguments: { "x-priority": 5 }) { ack.accept }
      expect(transport.options_for("orders")).to eq(prefetch: 6, concurrency: 4, tag: "mine", arguments: { "x-priority" => 5 })
    end

    it "makes up a tag that the wire carries, however long the queue's name is" do
      connection.consume("é" * 123) { ack.accept }
      tag = transport.subscribed.last.options[:tag]

      expect(tag.bytesize).to be <= 255
      expect(tag).to be_valid_encoding.and match(/\Aacemq-é+-\h{16}\z/)
    end

    {
      "no block" => [{}, /needs a block/],
      "a tag that is too long" => [{ tag: "t" * 256 }, /tag .* 256 bytes/],
      "a prefetch that is none" => [{ prefetch: -1 }, /prefetch of the consumer of orders .* not -1/],
      "a prefetch beyond what the wire carries" => [{ prefetch: 70_000 }, /prefetch of the consumer of orders .* 65535, not 70000/],
      "no concurrency" => [{ concurrency: 0 }, /concurrency .* 1 or more/],
      "a policy that is none" => [{ retry_policy: 5 }, /retry_policy .* not 5/],
      "a threshold that is none" => [{ retry_threshold: -1 }, /retry_threshold/],
      "a codec that is none" => [{ codec: :json }, /not a codec/]
    }.each do |what, (options, message)|
      it "refuses #{what}" do
        block = what == "no block" ? nil : -> { ack.accept }

        expect { consume(**options, &block) }.to raise_error(ArgumentError, message)
        expect([transport.subscribed, transport.declared_queues]).to all(be_empty)
      end
    end

    it "warns of waits that the broker would not sit through" do
      day = AceMQ::AMQP::RetryPolicy.fixed(3, 86_400)

      expect { consume(retry_policy: day, retry_threshold: 0) { ack.accept } }
        .to output(/retries of orders wait up to 86400.0 s in the consumer.*retry_threshold/).to_stderr
      expect { consume(retry_policy: day) { ack.accept } }.not_to output.to_stderr
    end

    it "warns of threads that can have nothing to do" do
      expect { consume(prefetch: 5, concurrency: 8) { ack.accept } }.to output(/8 threads and is handed 5 .* 3 of them/).to_stderr
      expect { consume(prefetch: 0, concurrency: 8) { ack.accept } }.not_to output.to_stderr
    end

    it "fails when the queue does not exist" do
      transport.missing!("orders")

      expect { consume { ack.accept } }.to raise_error(AceMQ::AMQP::TransportError, /orders/)
      expect(connection.consumers).to be_empty
    end

    it "names a transport that cannot" do
      plain = AceMQ::AMQP::Connection.new(transport: Struct.new(:publish).new)

      expect { plain.consume("q") { ack.accept } }.to raise_error(AceMQ::AMQP::ConfigurationError, /has no declare_exchange/)
    end
  end
end
