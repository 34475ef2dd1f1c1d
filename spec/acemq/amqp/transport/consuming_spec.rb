# frozen_string_literal: true

require "bunny"
require "fiddle"

RSpec.describe AceMQ::AMQP::Transport, "consuming" do
  let(:connection) { open_connection }
  let(:transport) { connection.transport }
  let(:queue) { new_queue(connection) }
  let(:taken) { Queue.new }

  def subscribe(queue, prefetch: 20, concurrency: 1, tag: "spec", on: transport, **options, &block)
    block ||= ->(delivery) { taken << delivery }
    on.subscribe(queue, prefetch: prefetch, concurrency: concurrency, tag: tag, **options, &block)
  end

  def send_numbers(count, to: queue)
    connection.publish_all(Array.new(count) { |i| i }, to: to)
  end

  def take(count)
    Array.new(count) { Timeout.timeout(15) { taken.pop } }
  end

  def numbers(deliveries)
    deliveries.map { |delivery| Integer(delivery.body) }
  end

  # What bunny sends is what any other client may send.
  def with_bunny
    session = Bunny.new(broker.url).start
    yield session.create_channel
  ensure
    session&.close
  end

  it "hands every delivery to the block, in order, and what is acked is gone" do
    send_numbers(500)
    subscription = subscribe(queue, prefetch: 50) { |delivery| taken << delivery if delivery.ack }

    expect(numbers(take(500))).to eq((0...500).to_a)
    subscription.close
    expect(connection.message_count(queue)).to eq(0)
  end

  it "works with several threads at a time, each settling on its own" do
    send_numbers(4)
    gate = Queue.new
    subscription = subscribe(queue, concurrency: 4) { |delivery| (taken << delivery) && gate.pop && delivery.ack }

    expect(numbers(take(4)).sort).to eq([0, 1, 2, 3]) # none of them is through yet
    4.times { gate << true }
    eventually { expect(gate.num_waiting + gate.size).to eq(0) }
    subscription.close
    expect(connection.message_count(queue)).to eq(0)
  end

  it "is handed no more than its prefetch ahead" do
    send_numbers(10)
    subscribe(queue, prefetch: 3)
    held = take(3)
    eventually { expect(connection.message_count(queue)).to eq(7) }

    held.first.ack
    expect(numbers(take(1))).to eq([3])
  end

  # To lapin they are the end of the connection, and of every consumer on it.
  it "takes names and properties that are no UTF-8, with question marks for what nobody can read" do
    bad = "caf\xE9".b
    connection.declare_exchange("#{queue}.x", kind: "fanout", auto_delete: true)
    connection.bind(queue: queue, exchange: "#{queue}.x")
    with_bunny do |channel|
      channel.basic_publish("body \xE9".b, "#{queue}.x", bad, type: bad, message_id: bad, correlation_id: bad,
                                                              content_type: bad, headers: { bad => bad, "n" => { bad => 1 } })
    end
    pulled = eventually { connection.pull(queue) || raise("nothing yet") }
    pulled.nack(requeue: true)
    subscribe(queue)
    taken = take(1).first

    [pulled, taken].each do |delivery|
      expect(delivery).to have_attributes(body: "body \xE9".b, routing_key: "caf?", message_id: "caf?", content_type: "caf?")
      expect(delivery.headers).to eq("caf?" => bad, "n" => { "caf?" => 1 })
    end
    target = new_queue(connection)
    transport.publish_copy(taken, routing_key: target)
    expect(taken.ack).to be(true)
    eventually { expect([connection.message_count(queue), connection.message_count(target)]).to eq([0, 1]) }
  end

  it "settles a delivery once, and gives back or throws away what is refused" do
    send_numbers(2)
    subscribe(queue)
    first, second = take(2)

    expect([first.ack, first.ack, first.nack(requeue: true)]).to eq([true, false, false])
    expect(second.nack(requeue: true)).to be(true)
    again = take(1).first
    expect([numbers([again]), again.redelivered]).to eq([[1], true])
    expect(again.nack(requeue: false)).to be(true)
    eventually { expect(connection.message_count(queue)).to eq(0) }
  end

  it "says which queue is missing" do
    expect { subscribe("spec.nosuch") }.to raise_error(AceMQ::AMQP::TransportError, /consume from the queue "spec.nosuch": NOT_FOUND/)
  end

  it "refuses what the wire cannot carry, and arguments the broker does not take" do
    expect { subscribe(queue, tag: "t" * 256) }.to raise_error(ArgumentError, /consumer tag is 256 bytes/)
    expect { subscribe(queue, prefetch: 65_536) }.to raise_error(ArgumentError, /prefetch must be .* 65535, not 65536/)
    expect { subscribe(queue, arguments: { "x-priority" => "high" }) }.to raise_error(AceMQ::AMQP::TransportError, /x-priority/)
  end

  describe "being stopped" do
    it "gives back what nobody has begun at once, and lets the rest be acked" do
      send_numbers(10)
      gate = Queue.new
      subscription = subscribe(queue, prefetch: 10) { |delivery| (taken << delivery) && gate.pop && delivery.ack }
      begun = take(1)

      subscription.stop
      eventually { expect(connection.message_count(queue)).to eq(9) }
      expect(subscription).not_to be_open
      gate << true
      eventually { expect(begun.first).not_to be_alive }
      subscription.close
      expect(numbers(drain(connection, queue))).to eq((1..9).to_a)
    end

    it "gives back on close what was begun and not settled" do
      send_numbers(1)
      subscription = subscribe(queue)
      held = take(1).first
      subscription.close

      expect([held.alive?, held.ack]).to eq([false, false])
      expect(drain(connection, queue).map(&:redelivered)).to eq([true])
    end

    it "does nothing the second time" do
      subscription = subscribe(queue)
      2.times { subscription.close }
      expect(subscription.state.first).to eq(:stopped)
    end
  end

  describe "being interrupted" do
    it "goes on with another thread when a handler ends its own" do
      send_numbers(3)
      subscribe(queue) do |delivery|
        delivery.ack
        taken << delivery
        Thread.exit if delivery.body == "0"
      end

      expect(numbers(take(3))).to eq([0, 1, 2])
    end

    it "goes on when its block raises" do
      send_numbers(2)
      expect do
        subscribe(queue) { |delivery| (taken << delivery) && delivery.ack && raise("no") if delivery.body == "0" || taken << delivery }
        take(2)
        eventually { expect(connection.message_count(queue)).to eq(0) }
      end.to output(/not settled: RuntimeError: no/).to_stderr
    end
  end

  it "is stopped by several threads at once as by one" do
    5.times do
      subscription = subscribe(queue)
      stops = Array.new(6) { Thread.new { elapsed { subscription.stop(timeout: 20) } } }
      expect(stops.map(&:value)).to all(be < 10)
    end
  end

  it "gives back what an interrupted pull has got meanwhile" do
    proxy = new_proxy
    through = open_connection(proxy.url(broker.url))
    through.pull(queue)
    send_numbers(1)
    holding_answers(proxy) do
      pulling = Thread.new { through.pull(queue) }
      eventually { expect(connection.message_count(queue)).to eq(0) }
      pulling.kill.join
    end

    eventually { expect(connection.message_count(queue)).to eq(1) }
  end

  describe "losing the broker's side (cases 16 and 21)" do
    it "drops late acks of a lost connection and is handed everything again" do
      send_numbers(10)
      subscribe(queue, prefetch: 5)
      old = take(5)
      broker.ctl("close_all_connections", "spec")
      eventually { expect(old.map(&:alive?)).to all(be(false)) }

      expect(old.map(&:ack)).to all(be(false))
      again = take(5).each(&:ack) + take(5).each(&:ack)
      expect(numbers(again)).to eq((0..9).to_a)
      expect(again.map(&:redelivered)).to eq(([true] * 5) + ([false] * 5))
      eventually { expect(broker.ctl("list_queues", "name", "messages_unacknowledged")).to match(/#{queue}\s+0/) }
    end

    it "subscribes again when its queue was deleted and made anew, and tells" do
      subscription = subscribe(queue)
      expect do
        connection.delete_queue(queue)
        eventually { expect(subscription.state).to match([:waiting, /no queue|cancelled/]) }
        eventually { expect($stderr.string).to include("not consuming") }
        connection.declare_queue(queue, queue_type: :classic)
        send_numbers(5)
        expect(numbers(take(5))).to eq((0..4).to_a)
      end.to output(/not consuming from "#{queue}".*subscribing again/).to_stderr
      expect(subscription).to be_open
    end

    it "is closed with its transport while it waits to subscribe again, whoever has subscribed meanwhile" do
      allow(AceMQ::AMQP::Log).to receive(:warn)
      own = open_connection.transport
      first, lasting = [queue, new_queue(connection)].map { |name| subscribe(name, on: own) }
      connection.delete_queue(queue)
      eventually { expect(first.state.first).to eq(:waiting) }
      subscribe(lasting.queue, tag: "other", on: own).close
      connection.declare_queue(queue, queue_type: :classic)
      eventually { expect(first).to be_open }
      own.close

      expect([first, lasting].map { |one| one.state.last }).to all(match(/stopped/))
    end

    it "knows when it has been stopped, too, that what it holds is handed out again" do
      proxy = new_proxy
      through = open_connection(proxy.url(broker.url))
      send_numbers(1)
      subscription = subscribe(queue, on: through.transport)
      held = take(1).first
      subscription.stop
      proxy.reset

      eventually { expect(held).not_to be_alive }
      expect(held.ack).to be(false)
      eventually { expect(connection.message_count(queue)).to eq(1) }
    end

    it "goes on when only its channel was closed by the broker" do
      send_numbers(2)
      subscribe(queue, prefetch: 1)
      held = take(1).first
      # As if we had acked something the broker does not know: on every channel of the server, ours among them.
      broker.ctl("eval", "[rabbit_channel:do(C, {'basic.ack', 999999, false}) || C <- rabbit_channel:list()].")
      eventually { expect(held).not_to be_alive }

      expect(numbers(take(1).each(&:ack))).to eq([0])
      expect(numbers(take(1).each(&:ack))).to eq([1])
    end
  end

  it "answers heartbeats while Ruby lets no other thread run" do
    patient = open_connection("#{broker.url}?heartbeat=1")
    send_numbers(1)
    subscribe(queue, on: patient.transport)
    held = take(1).first
    # A call that keeps the GVL for longer than the broker waits for two heartbeats.
    Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true).call(4)

    expect(held.ack).to be(true)
    patient.close
    expect(connection.message_count(queue)).to eq(0)
  end

  describe "in a forked child" do
    it "has ended, and the child's close leaves the parent's alone" do
      subscription = subscribe(queue)
      pid = fork do
        stopped = subscription.state.first == :stopped
        subscription.close
        transport.close
        exit!(stopped ? 0 : 1)
      end
      expect(Process.wait2(pid).last.exitstatus).to eq(0)

      send_numbers(1)
      expect(take(1).first.ack).to be(true)
      expect(subscription).to be_open
    end
  end

  describe "copying a delivery to another queue" do
    let(:target) { new_queue(connection) }
    let(:everything) do
      { content_type: "text/x-mine", content_encoding: "gzip", priority: 3, correlation_id: "c-1", reply_to: "answers",
        message_id: "m-1", timestamp: 1_767_323_045, type: "order.placed", app_id: "shop",
        headers: { "narrow" => 7, "float" => 1.5, "nested" => { "list" => [1, "two"] }, "x-acemq-new" => "kept" } }
    end

    it "keeps the body, every property and every header but those that are changed" do
      with_bunny { |channel| channel.default_exchange.publish("\x00\xFFbody".b, routing_key: queue, **everything) }
      delivery = eventually { connection.pull(queue) || raise("nothing yet") }
      transport.publish_copy(delivery, routing_key: target, headers: { "narrow" => nil, "x-acemq-attempt" => 2 })

      with_bunny do |channel|
        _, properties, body = channel.basic_get(target)
        expect(body).to eq("\x00\xFFbody".b)
        kept = everything.merge(delivery_mode: 2, timestamp: Time.at(1_767_323_045), headers: {
                                  "float" => 1.5, "nested" => { "list" => [1, "two"] }, "x-acemq-new" => "kept",
                                  "x-acemq-attempt" => 2
                                })
        expect(properties.to_h).to eq(kept)
      end
      expect(delivery.ack).to be(true)
    end

    it "goes to an exchange as well" do
      connection.declare_exchange("#{target}.x", kind: "direct", auto_delete: true)
      connection.bind(queue: target, exchange: "#{target}.x", routing_key: "order.placed")
      with_bunny { |channel| channel.default_exchange.publish("body", routing_key: queue, **everything) }
      delivery = eventually { connection.pull(queue) || raise("nothing yet") }

      expect { transport.publish_copy(delivery, exchange: "#{target}.x", routing_key: "order.other") }
        .to raise_error(AceMQ::AMQP::PublishError, /order\.other/)
      transport.publish_copy(delivery, exchange: "#{target}.x", routing_key: "order.placed")

      with_bunny do |channel|
        delivered, properties, = channel.basic_get(target)
        expect([delivered.exchange, delivered.routing_key]).to eq ["#{target}.x", "order.placed"]
        expect(properties.to_h).to include(everything.slice(:type, :app_id, :priority, :correlation_id, :headers))
      end
    end

    it "raises when no queue takes it, and for a delivery that is settled" do
      send_numbers(1)
      delivery = eventually { connection.pull(queue) || raise("nothing yet") }

      expect { transport.publish_copy(delivery, routing_key: "spec.nosuch") }
        .to raise_error(AceMQ::AMQP::PublishError) { |error| expect(error).to be_unroutable }
      delivery.ack
      expect { transport.publish_copy(delivery, routing_key: target) }.to raise_error(AceMQ::AMQP::TransportError, /settled/)
    end
  end
end
