# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Health, :consuming do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:connection) { fake_connection }

  def consume(queue)
    transport.declare_queue(queue)
    connection.consume(queue) { AceMQ::AMQP::Ack.accept }
  end

  it "is up when the broker answers, and leaves nothing behind" do
    report = connection.health

    expect(report).to be_up.and have_attributes(status: :up, detail: "", checked_at: be_within(5).of(Time.now))
    expect(report.parts).to include(consumers: 0, consumers_running: 0, queues: [], round_trip_ms: be >= 0)
    expect(transport.declared_queues).to be_empty
  end

  it "asks for a queue that is there, where there is one, instead of making one each time" do
    consume("orders")
    allow(transport).to receive(:declare_queue)

    expect(connection.health.parts).to include(consumers: 1, consumers_running: 1, queues: ["orders"], round_trip_ms: Numeric)
    expect(transport).not_to have_received(:declare_queue)
  end

  it "is degraded while a consumer does not run" do
    consume("orders")
    consume("payments")
    transport.subscribed.first.stop

    expect(connection.health).to be_degraded.and have_attributes(detail: "the consumer of orders is not running")
  end

  it "says why, where the transport knows" do
    consume("orders")
    transport.subscribed.first.define_singleton_method(:state) { [:waiting, "the queue was deleted"] }
    transport.subscribed.first.stop

    expect(connection.health.detail).to eq("the consumer of orders is not running: the queue was deleted")
  end

  it "does not count a consumer that was cancelled" do
    consume("orders").cancel

    expect(connection.health).to be_up.and have_attributes(parts: include(consumers: 0))
  end

  it "is up while the broker blocks publishing, asks nothing, and says so in the words alerts look for" do
    transport.blocked_reason = "low on memory"
    allow(transport).to receive(:declare_queue).and_raise("asked")
    report = connection.health

    expect(report).to be_up.and have_attributes(detail: "#{described_class::BLOCKED}: low on memory")
    expect(report.parts).to include(blocked: true, blocked_reason: "low on memory")
    expect(report.parts).not_to have_key(:round_trip_ms)
  end

  it "is down when it is closed" do
    connection.close

    expect(connection.health).to be_down.and have_attributes(detail: "the connection is closed")
  end

  it "is down when the broker cannot be asked" do
    transport.define_singleton_method(:declare_queue) { |*, **| raise AceMQ::AMQP::TransportError, "gone" }

    expect(connection.health).to be_down.and have_attributes(detail: "AceMQ::AMQP::TransportError: gone")
  end

  it "is down when the broker does not answer in time" do
    transport.define_singleton_method(:declare_queue) { |*, **| sleep }

    expect(described_class.of(connection, timeout: 0.05)).to be_down.and have_attributes(detail: /Timeout::Error/)
  end

  it "leaves one queue at most however often the broker is too slow, and takes it away when it is not" do
    slow = true
    transport.singleton_class.prepend(Module.new { define_method(:delete_queue) { |name| slow ? sleep : super(name) } })
    3.times { expect(described_class.of(connection, timeout: 0.05)).to be_down }
    expect(transport.declared_queues.size).to eq(1)

    slow = false
    expect(connection.health).to be_up
    expect(transport.declared_queues).to be_empty
  end

  it "asks with another queue in another process, on another connection, and where the last one was refused" do
    names = []
    transport.singleton_class.prepend(Module.new { define_method(:declare_queue) { |name, **| names << name and super(name) } })
    2.times { connection.health }
    fake_connection.health
    reader, writer = IO.pipe
    Process.wait(fork { connection.health && writer.write(names.last) && exit!(0) })
    names << reader.read_nonblock(200)
    transport.define_singleton_method(:declare_queue) { |name, **| names << name and raise AceMQ::AMQP::TransportError, "locked" }
    2.times { connection.health }

    expect(names.uniq.size).to eq(4)
    expect(names.values_at(1, 4)).to all(eq(names.first))
  end

  it "is not down for a probe that met an alarm" do
    fake = transport
    transport.define_singleton_method(:declare_queue) do |*, **|
      fake.blocked_reason = "disk"
      raise AceMQ::AMQP::TransportError, "no answer"
    end

    expect(connection.health).to be_up.and have_attributes(detail: /blocked.*: disk/)
  end

  it "is written down for machines" do
    report = described_class::Report.new(status: :up, detail: "", checked_at: Time.utc(2026, 1, 2, 3, 4, 5), parts: { consumers: 1 })

    expect(report.to_h).to eq(status: :up, checked: "2026-01-02T03:04:05Z", parts: { consumers: 1 })
    report.detail = "so"
    expect(report.to_h).to include(detail: "so")
  end

  describe ".aggregate" do
    def check(name, connection)
      described_class::Check.new(name, connection)
    end

    it "is as ill as the worst, and says of whom there is something to say" do
      blocked = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new(blocked_reason: "memory"))
      closed = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new).tap(&:close)
      report = described_class.aggregate(check("a", connection), check("b", blocked), check("c", -> { closed }))

      expect(report).to be_down
      expect(report.detail).to match(/\Ab: up \(the broker has blocked.*memory\); c: down \(the connection is closed\)\z/)
      expect(report.parts.keys).to eq(%w[a b c])
    end

    it "takes a connection that cannot be had for down" do
      expect(described_class.aggregate(check("a", -> { raise "no URL" }))).to be_down.and have_attributes(detail: /no URL/)
    end

    it "does not take two for one" do
      expect { described_class.aggregate(check("rabbit", -> { raise "asked" }), [check(:rabbit, connection), check("b", connection)]) }
        .to raise_error(ArgumentError, /several checks are called rabbit/)
    end

    it "is up with nothing to look at" do
      expect(described_class.aggregate).to be_up
    end
  end
end
