# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::AMQP::Patterns, ".record" do
  let(:connection) do
    AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new, origin: "orders@host-7")
  end

  def record(payload = { "order_id" => "A-1" }, **options)
    described_class.record(connection, payload, to: "order.placed", exchange: "shop-events", **options)
  end

  it "renders exactly what a direct publish sends" do
    fixed = { id: "m-1", type: "order.placed.v2", first_seen: Time.utc(2026, 1, 2), headers: { "tenant" => "acme" } }
    connection.publish({ "order_id" => "A-1" }, to: "order.placed", exchange: "shop-events", **fixed)
    sent = connection.transport.published.last

    made = record(**fixed)

    expect(made.to_h.slice(:exchange, :routing_key, :body, :content_type, :headers))
      .to eq(sent.to_h.slice(:exchange, :routing_key, :body, :content_type, :headers))
    expect(made.id).to eq sent.message_id
  end

  it "needs only a codec and an origin, and dials nothing" do
    connection = Struct.new(:codec, :origin).new(AceMQ::AMQP::JSONCodec.new, "orders@host-7")

    made = described_class.record(connection, { "a" => 1 }, to: "a")

    expect(made).to have_attributes(exchange: "", routing_key: "a", body: '{"a":1}', content_type: "application/json")
    expect(made.headers).to include("x-acemq-origin" => "orders@host-7", "x-acemq-id" => made.id)
  end

  it "works over a connection to a broker that is not there" do
    connection = AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:1", connection_timeout: 1)

    expect(described_class.record(connection, {}, to: "a").id).to match(/\A\h{8}-\h{4}-7/)
  end

  it "takes another codec for one message" do
    expect(record("raw", codec: AceMQ::AMQP::BytesCodec.new))
      .to have_attributes(body: "raw", content_type: "application/octet-stream")
  end

  it "takes a complete envelope, but not beside its fields" do
    envelope = AceMQ::AMQP::Envelope.new(id: "m-2", type: "t")

    expect(record(envelope: envelope).headers).to include("x-acemq-id" => "m-2", "x-acemq-type" => "t")
    expect { record(envelope: envelope, type: "other") }.to raise_error(ArgumentError, /envelope/)
  end

  it "refuses what no message has" do
    expect { record(subject: "s") }.to raise_error(ArgumentError, /subject/)
    expect { record(headers: { "x-acemq-id" => "forged" }) }.to raise_error(ArgumentError, /x-acemq-id/)
    expect { record(Float::NAN) }.to raise_error(AceMQ::AMQP::EncodeError)
  end

  it "gives records times that strictly increase, to the microsecond" do
    times = Array.new(500) { record.created_at }

    expect(times.each_cons(2)).to all(satisfy { |earlier, later| later > earlier })
    expect(times.map { |time| time.round(6) }).to eq times
    expect(times).to all(be_utc)
  end

  it "does not go back with the system's clock" do
    clock = AceMQ::AMQP::Patterns::RecordClock
    before = clock.tick

    expect(clock.tick(Time.now - 3600)).to be > before
  end
end

RSpec.describe AceMQ::AMQP::Patterns::OutboxRecord do
  subject(:record) do
    described_class.new(id: "m-1", exchange: "", routing_key: "order.placed", body: "secret", created_at: Time.at(0))
  end

  it "shows neither body nor headers" do
    record.headers = { "authorization" => "secret" }

    said = match(/m-1.*order\.placed.*6 bytes/).and(satisfy { |text| !text.include?("secret") })

    expect([record.to_s, record.inspect]).to all(said)
    expect { pp record }.to output(said).to_stdout
  end

  it "can be changed, as a value of its holder's" do
    record.body = "other"
    record.created_at = Time.at(1)

    expect(record).to have_attributes(body: "other", created_at: Time.at(1), attempts: nil, error: nil)
  end
end
