# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Transport, "topology and single gets" do
  let(:connection) { open_connection }

  it "declares, counts, finds and deletes" do
    queue = connection.declare_queue("spec.#{SecureRandom.hex(6)}", queue_type: :classic)
    connection.declare_exchange("#{queue}.x", kind: :direct, auto_delete: true)
    connection.bind(queue: queue, exchange: "#{queue}.x", routing_key: "k")
    connection.publish({}, to: "k", exchange: "#{queue}.x", mandatory: true)

    expect(connection.message_count(queue)).to eq(1)
    expect(connection.queue_exists?(queue)).to be(true)
    connection.delete_queue(queue)
    expect(connection.queue_exists?(queue)).to be(false)
  end

  it "declares quorum queues unless told otherwise, and classic ones without a type argument" do
    quorum = connection.declare_queue("spec.#{SecureRandom.hex(6)}")
    classic = connection.declare_queue("spec.#{SecureRandom.hex(6)}", queue_type: :classic)
    cleanups << -> { [quorum, classic].each { |queue| connection.delete_queue(queue) } }
    listed = broker.ctl("list_queues", "name", "type", "arguments").lines.to_h { |line| line.chomp.split("\t", 2) }

    expect(listed[quorum]).to include("quorum", "x-queue-type")
    # RabbitMQ 4 lists the default type of the virtual host with queues that were declared without one.
    expect(listed[classic].strip).to eq("classic\t[]").or eq("classic\t[{\"x-queue-type\",\"classic\"}]")
  end

  it "takes the broker's name for a queue without one" do
    expect(connection.declare_queue("", exclusive: true)).to start_with("amq.gen-")
  end

  it "passes on the broker's words, and goes on working" do
    queue = new_queue(connection)

    expect { connection.declare_queue(queue, queue_type: :classic, arguments: { "x-max-length" => 5 }) }
      .to raise_error(AceMQ::AMQP::TransportError, /declare the queue.*inequivalent arg 'x-max-length'/)
    expect { connection.message_count("nosuch") }.to raise_error(AceMQ::AMQP::TransportError, /no queue 'nosuch'/)
    expect { connection.bind(queue: queue, exchange: "nosuch") }.to raise_error(AceMQ::AMQP::TransportError, /no exchange/)
    expect { connection.pull("nosuch") }.to raise_error(AceMQ::AMQP::TransportError, /no queue 'nosuch'/)
    expect(connection.message_count(queue)).to eq(0)
  end

  it "hands a message out until it is settled" do
    queue = new_queue(connection)
    3.times { |i| connection.publish(i, to: queue) }
    first, second, third = Array.new(3) { connection.pull(queue) }
    first.ack
    second.nack(requeue: true)
    third.nack(requeue: false)

    again = connection.pull(queue)
    expect(again).to have_attributes(body: "1", redelivered: true)
    again.ack
    expect(connection.pull(queue)).to be_nil
  end

  describe "an inbox" do
    let(:queue) { new_queue(connection) }

    before { connection.publish_all([1, 2, 3, 4], to: queue) }

    it "gives back what was pulled and not settled, in its order" do
      held = connection.inbox do |inbox|
        pulled = Array.new(4) { inbox.pull(queue) }
        pulled[1].ack
        pulled[2].nack(requeue: false)
        expect(inbox.pull(queue)).to be_nil
        pulled
      end

      expect(held.map(&:alive?)).to all(be false)
      expect(held.map(&:ack)).to all(be false)
      eventually { expect(connection.message_count(queue)).to eq(2) }
      expect(drain(connection, queue).map(&:body)).to eq(%w[1 4])
    end

    it "does so when its block raises" do
      failing = lambda do
        connection.inbox do |inbox|
          inbox.pull(queue)
          raise "bug"
        end
      end

      expect(&failing).to raise_error("bug")
      eventually { expect(connection.message_count(queue)).to eq(4) }
    end

    it "leaves alone what was pulled elsewhere" do
      elsewhere = connection.pull(queue)
      connection.inbox { |inbox| inbox.pull(queue) }

      expect(elsewhere).to be_alive
      expect(elsewhere.ack).to be true
      eventually { expect(connection.message_count(queue)).to eq(3) }
    end

    it "is there for its block only" do
      kept = connection.inbox { |inbox| inbox }

      expect { kept.pull(queue) }.to raise_error(ArgumentError, /closed.*its block only/)
      expect(connection.message_count(queue)).to eq(4)
    end

    it "says that a queue does not exist, or has no name" do
      connection.inbox do |inbox|
        expect { inbox.pull("nosuch") }.to raise_error(AceMQ::AMQP::TransportError, /no queue 'nosuch'/)
        expect { inbox.pull("q" * 256) }.to raise_error(ArgumentError, /queue/)
        expect(inbox.pull(queue).body).to eq("1")
      end
    end

    it "needs a transport that has one" do
      plain = Class.new { def publish(**); end }.new

      expect { AceMQ::AMQP::Connection.new(transport: plain).inbox { nil } }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /has no inbox/)
    end
  end

  it "drops a late ack when the delivery's channel is gone, and is handed the message again" do
    queue = new_queue(connection)
    connection.publish("late", to: queue)
    delivery = connection.pull(queue)
    broker.ctl("close_all_connections", "spec")

    eventually { expect(connection.pull(queue)).to have_attributes(redelivered: true) }
    expect { delivery.ack }.not_to raise_error
  end

  it "reads headers of every AMQP type" do
    queue = new_queue(connection)
    headers = { "n" => nil, "t" => true, "i" => -(2**63), "f" => 1.5, "s" => "é", "b" => "\xFF".b, "at" => Time.at(1_700_000_000),
                "d" => BigDecimal("12.345"), "l" => ["x", 1, [nil]], "h" => { "k" => { "z" => false } }, :sym => :value }
    connection.publish({}, to: queue, headers: headers)

    expect(connection.pull(queue).headers).to include(headers.except(:sym).merge("sym" => "value"))
  end
end
