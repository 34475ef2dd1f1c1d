# frozen_string_literal: true

require "bigdecimal"
require "bunny"
require "json"
require "securerandom"

# What is on the wire, seen through another client's eyes.
RSpec.describe "messages on the wire", :broker do
  let(:queue) { "wire.#{SecureRandom.hex(6)}" }
  let(:connection) { AceMQ::AMQP::Connection.open(AceMQ::TestServers.rabbitmq.url, origin: "shop@host") }
  let(:other) { Bunny.new(AceMQ::TestServers.rabbitmq.url).start }
  let(:channel) { other.create_channel }

  before { connection.declare_queue(queue, queue_type: :classic) }

  after do
    connection.delete_queue(queue)
    connection.close
    other.close
  end

  # @return [Array] properties and body, as bunny reads them
  def read
    delivery, properties, body = channel.basic_get(queue)
    raise "nothing in #{queue}" unless delivery

    [properties.to_h, body]
  end

  # As another producer sends it; in the queue when this returns.
  def send_by_another(body, **properties)
    channel.confirm_select
    channel.default_exchange.publish(body, routing_key: queue, **properties)
    channel.wait_for_confirms
  end

  it "has the properties and headers that the family writes, and no others" do
    envelope = connection.publish({ "id" => 1 }, to: queue, type: "order.placed.v2", causation_id: "c-1",
                                                 headers: { tenant: "acme" })
    properties, body = read

    expect(body).to eq('{"id":1}')
    expect(properties).to eq(content_type: "application/json", delivery_mode: 2, priority: 0, message_id: envelope.id,
                             headers: envelope.to_headers)
    expect(properties[:headers]).to include(
      "x-acemq-id" => envelope.id, "x-acemq-type" => "order.placed.v2", "x-acemq-version" => 1,
      "x-acemq-correlation" => envelope.id, "x-acemq-causation" => "c-1", "x-acemq-attempt" => 1,
      "x-acemq-first-seen" => envelope.first_seen_ms, "x-acemq-origin" => "shop@host", "tenant" => "acme"
    )
  end

  it "has a reply address and a transient mode where they are asked for" do
    connection.publish({}, to: queue, reply_to: "answers", persistent: false)

    expect(read.first).to include(reply_to: "answers", delivery_mode: 1)
  end

  it "carries every type of header there and back" do
    headers = { "s" => "é", "i" => 2**62, "f" => 1.5, "yes" => true, "nothing" => nil, "at" => Time.at(1_700_000_000),
                "d" => BigDecimal("1.25"), "list" => [1, ["x"]], "table" => { "a" => { "b" => 1 } }, "bytes" => "\xFF\x00".b }
    connection.publish({}, to: queue, headers: headers)
    connection.publish({}, to: queue, headers: headers)

    expect(read.first[:headers]).to include(headers.merge("s" => "é".b))
    received = AceMQ::AMQP::Envelope.from_headers(connection.pull(queue).tap(&:ack).headers)
    expect(received.headers.transform_values { |value| value.is_a?(String) ? value.b : value })
      .to eq(headers.merge("s" => "é".b))
  end

  it "carries bodies byte by byte" do
    bodies = ["", "\0", (0..255).to_a.pack("C*"), SecureRandom.bytes(1024 * 1024)]
    connection.publish_all(bodies, to: queue, codec: AceMQ::AMQP::BytesCodec.new)

    expect(Array.new(bodies.size) { read.last.b }).to eq(bodies.map(&:b))
  end

  it "is the same message whether it is published or recorded" do
    payload = { at: Time.utc(2026, 1, 2, 3, 4, 5, 678_900), amount: BigDecimal("1.10"), big: 2**70, html: "<b>&" }
    envelope = AceMQ::AMQP::Envelope.new(type: "order.placed", headers: { "tenant" => "acme", "ratio" => 0.1 })
    record = AceMQ::AMQP::Patterns.record(connection, payload, to: queue, envelope: envelope)
    store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
    store.add(record)

    connection.publish(payload, to: queue, envelope: envelope)
    AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store).sweep

    direct, outbox = Array.new(2) { read }
    expect(outbox).to eq(direct)
  end

  # The digits of a double are read back by two parsers on the way; one that rounds would change one in six.
  it "keeps numbers exactly in headers that were stored as JSON" do
    random = Random.new(1)
    numbers = Array.new(500) { random.rand * (10**random.rand(-20..20)) } + [-(2**63), (2**63) - 1]
    ticket = connection.transport.submit(
      [{ exchange: "", routing_key: queue, body: "", headers: JSON.generate("n" => numbers) }], in_flight: 1
    )

    expect(ticket.wait(10)).to eq([nil])
    expect(connection.pull(queue).tap(&:ack).headers["n"]).to eq(numbers)
  end

  it "carries the family's envelopes without a difference" do
    fixtures = JSON.parse(File.read(File.expand_path("../../fixtures/envelopes.json", __dir__)))

    fixtures.each do |fixture|
      send_by_another(fixture["body"], headers: fixture["headers"], message_id: fixture["message_id"])
      delivery = connection.pull(queue).tap(&:ack)
      envelope = AceMQ::AMQP::Envelope.from_headers(delivery.headers, fixture["routing_key"])
      connection.publish(JSON.parse(delivery.body), to: queue, envelope: envelope)
      again, body = read

      expect(again).to include(headers: fixture["headers"], message_id: fixture["message_id"],
                               content_type: fixture["content_type"])
      expect(body).to eq(fixture["body"])
    end
  end

  it "recognises the redelivery of another producer's message" do
    send_by_another("{}", message_id: "theirs-1")

    ids = Array.new(2) do
      delivery = connection.pull(queue)
      delivery.nack(requeue: true)
      eventually { expect(connection.message_count(queue)).to eq(1) }
      AceMQ::AMQP::Envelope.from_headers(delivery.headers, "", message_id: delivery.message_id).id
    end
    expect(ids).to eq(%w[theirs-1 theirs-1])
  end

  # Whatever one caller hands in, others on the connection must not feel it.
  it "stays open when a message cannot be carried" do
    refused = [[ArgumentError, { to: "k" * 256 }], [ArgumentError, { to: queue, id: "i" * 256 }],
               [ArgumentError, { to: queue, headers: { "n" * 256 => 1 } }],
               [StandardError, { to: queue, headers: { "huge" => "x" * 131_500 } }]]
    before = connection.transport.open?

    refused.each { |error, options| expect { connection.publish({}, **options) }.to raise_error(error, /131|256/) }
    connection.publish({ "ok" => true }, to: queue)

    expect(before).to be(true)
    expect(connection.message_count(queue)).to eq(1)
  end

  it "says which message of a batch was returned" do
    connection.declare_exchange("#{queue}.x", kind: :fanout, auto_delete: true)
    lonely = { to: "nobody", exchange: "#{queue}.x", mandatory: true }

    expect { connection.publish({}, **lonely) }.to raise_error(AceMQ::AMQP::PublishError) { |error|
      expect(error).to have_attributes(unroutable?: true, scope: :destination)
    }
    expect { connection.publish_all([1, 2], **lonely) }
      .to raise_error(AceMQ::AMQP::PublishError, /\A2 of 2 messages were not confirmed; 0 were/)
  ensure
    channel.exchange_delete("#{queue}.x")
  end
end
