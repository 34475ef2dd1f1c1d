# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Transport, "publishing" do
  let(:connection) { open_connection }
  let(:transport) { connection.transport }
  let(:queue) { new_queue(connection) }

  def message(key, body = "b", **more)
    { exchange: "", routing_key: key, body: body, mandatory: true }.merge(more)
  end

  it "sends what the wire contract says" do
    sent = connection.publish({ "a" => 1 }, to: queue, type: "order.placed.v2", headers: { "tenant" => "acme" })
    delivery = connection.pull(queue)

    expect(delivery.to_h).to include(body: '{"a":1}', content_type: "application/json", routing_key: queue,
                                     message_id: sent.id, redelivered: false, reply_to: nil)
    expect(delivery.headers).to include("x-acemq-id" => sent.id, "x-acemq-type" => "order.placed.v2",
                                        "x-acemq-version" => 1, "x-acemq-attempt" => 1, "tenant" => "acme")
  end

  it "carries any bytes" do
    bodies = ["", "a\0b", (0..255).to_a.pack("C*"), "😀".b, "x" * (1024 * 1024)]
    transport.publish_all(bodies.map { |body| message(queue, body) })

    expect(drain(connection, queue).map(&:body)).to eq(bodies.map(&:b))
  end

  it "keeps the order of a batch" do
    transport.publish_all((0...2_000).map { |i| message(queue, i.to_s * (1 + (i % 50))) })

    expect(drain(connection, queue).map(&:body)).to eq((0...2_000).map { |i| i.to_s * (1 + (i % 50)) })
  end

  # Case 8
  it "does not call a message confirmed that reached no queue" do
    expect { connection.publish({}, to: "nobody.home", mandatory: true) }
      .to raise_error(AceMQ::AMQP::PublishError) { |e|
        expect(e).to have_attributes(unroutable?: true, scope: :destination, exchange: "", routing_key: "nobody.home",
                                     reply_code: 312, permanent?: false, unknown?: false)
      }
    expect { connection.publish({}, to: queue, mandatory: true) }.not_to raise_error
  end

  # Case 8
  it "takes an alternate exchange for an arrival" do
    name = "spec.#{SecureRandom.hex(4)}"
    connection.declare_exchange("#{name}.alternate", kind: :fanout, auto_delete: true)
    connection.bind(queue: queue, exchange: "#{name}.alternate")
    connection.declare_exchange(name, kind: :topic, auto_delete: true, arguments: { "alternate-exchange" => "#{name}.alternate" })
    connection.publish({ "n" => 1 }, to: "anything", exchange: name, mandatory: true)

    expect(drain(connection, queue).map(&:routing_key)).to eq(["anything"])
  end

  it "leaves a returned message without mandatory alone" do
    expect { connection.publish({}, to: "nobody.home") }.not_to raise_error
  end

  it "tells a nack from the rest" do
    full = new_queue(connection, arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" })
    connection.publish({}, to: full)

    expect { connection.publish({}, to: full) }
      .to raise_error(AceMQ::AMQP::PublishError) { |e| expect(e).to have_attributes(nacked?: true, scope: :destination) }
  end

  # Case 4
  it "blames a missing exchange on its own records, wherever they stand in the batch" do
    [[0], [5], [9], [2, 7]].each do |bad|
      batch = (0..9).map { |i| bad.include?(i) ? message("k", i.to_s, exchange: "nosuch") : message(queue, i.to_s) }
      outcomes = transport.publish_all(batch)

      expect(outcomes.each_index.select { |i| outcomes[i].is_a?(Exception) }).to eq(bad)
      expect(outcomes[bad.first]).to have_attributes(scope: :destination, exchange: "nosuch", reply_code: 404)
      expect(drain(connection, queue).map(&:body)).to eq(((0..9).to_a - bad).map(&:to_s))
    end
  end

  # Case 4, when the exchange was there a moment ago and the 404 comes in the middle of a batch.
  it "blames an exchange that went away on its own records" do
    name = "spec.#{SecureRandom.hex(4)}"
    connection.declare_exchange(name, kind: :fanout, durable: false)
    connection.bind(queue: queue, exchange: name)
    transport.publish(**message("k", "warm", exchange: name))
    broker.ctl("eval", "rabbit_exchange:delete({resource, <<\"/\">>, exchange, <<\"#{name}\">>}, false, <<\"spec\">>).")
    drain(connection, queue)

    outcomes = transport.publish_all((0...50).map { |i| i == 20 ? message("k", "bad", exchange: name) : message(queue, i.to_s) })

    expect(outcomes.each_index.select { |i| outcomes[i].is_a?(Exception) }).to eq([20])
    expect(outcomes[20]).to have_attributes(scope: :destination, reply_code: 404)
    expect(drain(connection, queue).map(&:body).uniq).to match_array((0...50).map(&:to_s) - ["20"])
  end

  it "blames a refused permission on its own destination" do
    user = "spec_#{SecureRandom.hex(4)}"
    broker.ctl("add_user", user, "pw")
    broker.ctl("set_permissions", user, ".*", "^amq\\.default$|^$", ".*")
    cleanups << -> { broker.ctl("delete_user", user) }
    restricted = open_connection(broker.url(user: user, password: "pw")).transport

    2.times do
      outcomes = restricted.publish_all((0...20).map { |i| i == 7 ? message("k", "bad", exchange: "amq.direct") : message(queue, i.to_s) })

      expect(outcomes.each_index.select { |i| outcomes[i].is_a?(Exception) }).to eq([7])
      expect(outcomes[7]).to have_attributes(scope: :destination, reply_code: 403, permanent?: false)
      expect(drain(connection, queue).map(&:body).uniq).to match_array((0...20).map(&:to_s) - ["7"])
    end
  end

  # Case 5
  it "refuses what the wire cannot carry, and keeps its connection" do
    transport.publish(**message(queue))
    before = broker.ctl("list_connections", "pid")
    refused = {
      "routing key is 256 bytes" => message("k" * 256),
      "message id is 256 bytes" => message(queue, message_id: "i" * 256),
      "header name is 256 bytes" => message(queue, headers: { "h" * 256 => 1 }),
      "one AMQP frame" => message(queue, headers: { "h" => "x" * 131_500 }),
      "NaN" => message(queue, headers: { "h" => Float::NAN }),
      "64-bit integer" => message(queue, headers: { "h" => 2**70 }),
      "is a Object" => message(queue, headers: { "h" => Object.new }),
      "body is a Hash" => message(queue, {}),
      "list of routing keys" => message(queue, headers: { "CC" => "k" }),
      "not UTF-8" => message("\xFF")
    }

    outcomes = transport.publish_all(refused.values + [message(queue)])

    outcomes[0..-2].zip(refused.keys) do |outcome, text|
      expect(outcome).to be_a(AceMQ::AMQP::PublishError) & have_attributes(scope: :record, permanent?: true)
      expect(outcome.message).to include(text)
    end
    expect(outcomes.last).to be_a(String)
    expect(broker.ctl("list_connections", "pid")).to eq(before)
  end

  it "takes the same id twice in one batch" do
    outcomes = transport.publish_all([message(queue, message_id: "one"), message("nobody.home", message_id: "one")])

    expect(outcomes).to match(["one", an_instance_of(AceMQ::AMQP::PublishError)])
  end

  # Case 10, second half
  it "gives each of many threads its own result" do
    outcomes = Array.new(8) do |t|
      Thread.new do
        Array.new(100) do |i|
          connection.publish({ "n" => "#{t}.#{i}" }, to: i % 10 == 9 ? "nobody.home" : queue, mandatory: true)
          :confirmed
        rescue AceMQ::AMQP::PublishError => e
          e.unroutable? ? :returned : e
        end
      end
    end.flat_map(&:value)

    expect(outcomes.tally).to eq(confirmed: 720, returned: 80)
    expect(drain(connection, queue).map(&:body).uniq.size).to eq(720)
  end
end
