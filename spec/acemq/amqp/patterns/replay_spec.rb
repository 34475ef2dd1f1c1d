# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns, ".replay" do
  def replay(from: "orders.dlq", **options, &filter)
    described_class.replay(connection, from: from, **options, &filter)
  end

  context "without a broker", :consuming do
    let(:transport) { AceMQ::SpecSupport::Consuming::RefusingTransport.new }
    let(:connection) { fake_connection }

    # Dead letters with these payloads, as a consumer puts them there.
    def bury(*payloads, queue: "orders.dlq", **fields)
      connection.publish_all(payloads, to: queue, attempt: 5, error: "gave up", **fields)
      transport.published.clear
    end

    before do
      %w[orders orders.dlq].each { |queue| connection.declare_queue(queue) }
    end

    def bodies(queue)
      Array.new(transport.message_count(queue)) { transport.pull(queue).body }
    end

    it "moves everything back, from the first attempt and without its error" do
      bury({ "n" => 1 }, { "n" => 2 }, type: "order", headers: { "tenant" => "acme" })
      result = replay

      expect(result.to_h).to eq(from: "orders.dlq", exchange: "", routing_key: "orders", total: 2, replayed: 2, skipped: 0,
                                refused: 0, refusal: nil, ended: :finished, dry_run: false)
      expect(result.to_s).to eq("2 of 2 messages of orders.dlq moved to orders, 0 skipped (finished)")
      moved = transport.published_to("orders")
      expect(moved.map(&:mandatory)).to all(be(true))
      expect(moved.first.headers).to include("tenant" => "acme", "x-acemq-type" => "order", "x-acemq-attempt" => 1,
                                             "acemq-replayed-from" => "orders.dlq", "acemq-replay-count" => 1)
      expect(moved.first.headers).not_to have_key("x-acemq-error")
      expect(moved.first.headers["acemq-replayed-at"]).to be_within(10_000).of(Time.now.to_f * 1000)
      expect(transport.message_count("orders.dlq")).to eq(0)
    end

    it "counts how often a message was moved, whoever wrote the count" do
      bury(1, headers: { "acemq-replay-count" => 2 })
      bury(2, headers: { "acemq-replay-count" => "7" })
      bury(3, headers: { "acemq-replay-count" => "many" })
      replay

      expect(transport.published_to("orders").map { |copy| copy.headers["acemq-replay-count"] }).to eq([3, 8, 1])
    end

    it "leaves attempt and error as they are with restart: false" do
      bury(1)
      replay(restart: false)

      expect(transport.published_to("orders").last.headers).to include("x-acemq-attempt" => 5, "x-acemq-error" => "gave up")
    end

    it "moves what the filter picks, and gives back the rest in its order" do
      bury(*1..6)
      result = replay { |message| message.payload.even? && message.envelope.error == "gave up" }

      expect(result).to have_attributes(replayed: 3, skipped: 3, ended: :finished)
      expect(bodies("orders")).to eq(%w[2 4 6])
      expect(bodies("orders.dlq")).to match_array(%w[1 3 5])
    end

    it "takes the filter as an argument too, but not twice" do
      bury(1, 2)

      expect(replay(where: ->(message) { message.payload == 1 }).replayed).to eq(1)
      expect { replay(where: -> { true }) { true } }.to raise_error(ArgumentError, /either where: or a block/)
    end

    it "shows the filter what cannot be decoded without a payload" do
      transport.publish(exchange: "", routing_key: "orders.dlq", body: "{broken", message_id: "m")
      seen = []
      replay { |message| seen << [message.payload, message.body, message.id] && false }

      expect(seen).to eq([[nil, "{broken", "m"]])
    end

    it "stops at the limit, and at the deadline" do
      bury(*1..4)

      expect(replay(limit: 3)).to have_attributes(replayed: 3, ended: :limit)
      bury(*5..6)
      expect(replay(deadline: 1e-9)).to have_attributes(replayed: 0, ended: :deadline)
      expect(transport.message_count("orders.dlq")).to eq(3)
    end

    it "moves nothing on a dry run, and counts what it would" do
      bury(*1..4)
      result = replay(dry_run: true) { |message| message.payload > 1 }

      expect(result).to have_attributes(replayed: 3, skipped: 1, dry_run?: true)
      expect(result.to_s).to include("3 of 4 messages of orders.dlq would be moved to orders")
      expect(transport.published_to("orders")).to be_empty
      expect(transport.message_count("orders.dlq")).to eq(4)
    end

    it "tells how far it is" do
      bury(*1..3)
      told = []
      replay(progress: ->(result) { told << [result.examined, result.replayed, result.total] }) { |m| m.payload != 2 }

      expect(told).to eq([[1, 1, 3], [2, 1, 3], [3, 2, 3]])
    end

    it "ends although what it moves comes back at once" do
      bury(*1..3)
      again = transport
      transport.singleton_class.prepend(Module.new do
        define_method(:publish) do |routing_key:, **message|
          super(routing_key: routing_key, **message).tap do
            again.pull("orders") && super(routing_key: "orders.dlq", **message) if routing_key == "orders"
          end
        end
      end)

      expect(replay).to have_attributes(replayed: 3, ended: :finished)
      expect(transport.message_count("orders.dlq")).to eq(3)
    end

    it "loses nothing when nobody takes the copies, and says how far it came" do
      bury(*1..3)
      calls = 0
      transport.singleton_class.prepend(Module.new do
        define_method(:publish) do |**message|
          raise AceMQ::AMQP::PublishError.new("no queue", unroutable: true, scope: :destination) if (calls += 1) > 1

          super(**message)
        end
      end)

      expect { replay }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /after 1 of 3 messages; .*: no queue/) { |error|
        expect(error.result).to have_attributes(replayed: 1, ended: :failed)
        expect(error).to have_attributes(scope: :destination)
        expect(error.cause).to be_unroutable
      }
      expect(transport.message_count("orders.dlq")).to eq(2)
    end

    it "passes one by that cannot be carried" do
      bury(*1..3)
      transport.singleton_class.prepend(Module.new do
        def publish(body:, **message)
          raise AceMQ::AMQP::PublishError.new("too large", scope: :record, permanent: true) if body == "2"

          super
        end
      end)
      result = replay

      expect(result).to have_attributes(replayed: 2, refused: 1, refusal: have_attributes(message: "too large"))
      expect(result.to_s).to end_with("; 1 cannot be carried: too large")
      expect(bodies("orders.dlq")).to eq(["2"])
    end

    describe "of messages that came back to their queue before" do
      before { bury(*1..3, headers: { "x-delivery-count" => 2 }) }

      def refuse(scope)
        transport.singleton_class.prepend(Module.new do
          define_method(:publish) do |**message|
            raise AceMQ::AMQP::PublishError.new("full", scope: scope) if message[:routing_key] == "orders.dlq"

            super(**message)
          end
        end)
      end

      it "puts them back as copies, in their order" do
        expect(replay { |message| message.payload == 2 }).to have_attributes(replayed: 1, skipped: 2)
        copies = transport.published.last(3)
        expect(copies.map { |copy| [copy.routing_key, copy.body] }).to eq([%w[orders.dlq 1], %w[orders 2], %w[orders.dlq 3]])
        expect(copies.flat_map { |copy| copy.headers.keys }).not_to include("x-delivery-count")
        expect(bodies("orders.dlq")).to eq(%w[1 3])
      end

      it "does so behind one that did not" do
        bodies("orders.dlq")
        bury(1)
        bury(2, headers: { "x-delivery-count" => 2 })

        expect { replay(dry_run: true) }.to change { transport.published.size }.by(1)
        expect(transport.published.last).to have_attributes(routing_key: "orders.dlq", body: "2")
        expect(bodies("orders.dlq")).to contain_exactly("1", "2")
      end

      it "does so too when the filter raises" do
        expect { replay { raise "bug" } }.to raise_error("bug")

        expect(transport.published.last).to have_attributes(routing_key: "orders.dlq", body: "1")
        expect(transport.published.last.headers).not_to have_key("x-delivery-count")
        expect(bodies("orders.dlq")).to contain_exactly("1", "2", "3")
      end

      it "keeps the type that they had by their routing key" do
        transport.publish(exchange: "", routing_key: "orders.dlq", body: "4", message_id: "m", headers: { "x-delivery-count" => 2 })
        replay(dry_run: true)

        expect(transport.published.last.headers).to include("x-acemq-type" => "orders.dlq")
      end

      it "does not when the outcome is unknown, and says so" do
        tries = 0
        transport.singleton_class.prepend(Module.new do
          define_method(:publish) do |**|
            tries += 1
            raise AceMQ::AMQP::PublishError.new("no confirm", scope: :destination, unknown: true)
          end
        end)

        expect { replay(dry_run: true) }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /a copy of the last one perhaps/) { |error|
          expect(error).to be_unknown
        }
        expect(tries).to eq(1)
        expect(transport.message_count("orders.dlq")).to eq(3)
      end

      it "takes nothing while the broker takes no copies" do
        allow(connection).to receive(:blocked_reason).and_return("low on memory")
        expect(transport).not_to receive(:pull)

        expect { replay }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /takes nothing at present \(low on memory\)/)
      end

      it "holds them when the queue takes no copies, and says once what that means" do
        refuse(:destination)
        expect(AceMQ::AMQP::Log).to receive(:warn).once.with(/orders.dlq takes no copies.*full.*delivery limit/)

        expect(replay(dry_run: true)).to have_attributes(replayed: 3, ended: :finished)
        expect(transport.message_count("orders.dlq")).to eq(3)
      end

      it "ends when the broker is lost meanwhile" do
        refuse(:connection)

        expect { replay(dry_run: true) }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /after 0 of 3 messages.*full/)
        expect(transport.message_count("orders.dlq")).to eq(3)
      end
    end

    it "loses nothing when the filter raises" do
      bury(*1..3)

      expect { replay { |message| message.payload == 2 ? raise("bug") : true } }.to raise_error("bug")
      expect(transport.message_count("orders.dlq") + transport.message_count("orders")).to eq(3)
    end

    it "knows where dead letters and parked messages come from" do
      connection.declare_queue("orders.parked")
      bury(1, queue: "orders.parked")

      expect(replay(from: "orders.parked")).to have_attributes(routing_key: "orders", replayed: 1)
    end

    it "moves to an exchange, when told with which routing key" do
      connection.bind(queue: "orders", exchange: "shop", routing_key: "order.placed")
      bury(1)

      expect(replay(exchange: "shop", routing_key: "order.placed").to_s).to include("moved to shop/order.placed")
      expect(transport.published.last).to have_attributes(exchange: "shop", routing_key: "order.placed")
    end

    {
      "a queue onto itself" => [{ routing_key: "orders.dlq" }, /onto itself/],
      "a queue that has no source" => [{ from: "orders" }, /give routing_key:.*does not end in \.dlq or \.parked/],
      "to no queue" => [{ routing_key: "" }, /routing_key: the name of the queue is empty/],
      "to an exchange without a key" => [{ exchange: "shop" }, /give routing_key:.*exchange shop needs one/],
      "from no queue" => [{ from: "" }, /from: the name of the queue is empty/],
      "with a limit that is none" => [{ limit: -1 }, /limit:.*not -1/],
      "with a deadline that is none" => [{ deadline: nil }, /deadline:.*not nil/],
      "with a filter that is none" => [{ where: 1 }, /where:.*must answer call/],
      "with a progress that is none" => [{ progress: 1 }, /progress:.*must answer call/]
    }.each do |what, (options, message)|
      it "refuses to replay #{what}" do
        bury(1)

        expect { replay(**options) }.to raise_error(ArgumentError, message)
        expect(transport.message_count("orders.dlq")).to eq(1)
      end
    end
  end

  context "on a broker" do
    let(:connection) { open_connection }
    let(:queue) { new_queue(connection) }
    let(:dead) { new_queue(connection, "#{queue}.dlq") }

    it "moves a chosen part, and leaves the rest in its place and order" do
      connection.publish_all((1..50).to_a, to: dead, headers: { "tenant" => "acme" }, correlation_id: "c")
      result = replay(from: dead) { |message| (message.payload % 5).zero? }

      expect(result).to have_attributes(total: 50, replayed: 10, skipped: 40)
      moved = drain(connection, queue)
      expect(moved.map { |message| message.body.to_i }).to eq((1..50).select { |n| (n % 5).zero? })
      expect(moved.first.headers).to include("tenant" => "acme", "x-acemq-correlation" => "c", "acemq-replayed-from" => dead)
      eventually { expect(connection.message_count(dead)).to eq(40) }
      expect(drain(connection, dead).map { |message| message.body.to_i }).to eq((1..50).reject { |n| (n % 5).zero? })
    end

    it "stops where its target does not exist, and loses nothing" do
      connection.publish_all([1, 2, 3], to: dead)

      expect { replay(from: dead, routing_key: "spec.nosuch") }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /0 of 3/)
      eventually { expect(connection.message_count(dead)).to eq(3) }
    end

    # One by one, 10,000 would keep a classic queue from everything else for a minute.
    { classic: :eq, quorum: :match_array }.each do |type, matcher|
      it "gives back to a #{type} queue all at once" do
        dead = new_queue(connection, "#{queue}.dlq", queue_type: type)
        connection.publish_all((1..60).to_a, to: dead)
        expect_any_instance_of(AceMQ::AMQP::Delivery).not_to receive(:nack)
        replay(from: dead, dry_run: true)

        eventually { expect(connection.message_count(dead)).to eq(60) }
        expect(drain(connection, dead).map { |message| Integer(message.body) }).to public_send(matcher, (1..60).to_a)
      end
    end

    describe "of a queue that drops what came back to it too often" do
      let(:limit) { { "x-delivery-limit" => 3 } }
      let(:dead) { new_queue(connection, "#{queue}.dlq", queue_type: :quorum, arguments: limit) }

      def numbers(name, count)
        eventually { expect(connection.message_count(name)).to eq(count) }
        drain(connection, name).map { |message| Integer(message.body) }
      end

      it "loses nothing however often it is looked at, and changes nothing but the place" do
        connection.publish_all((1..3).to_a, to: dead, headers: { "tenant" => "acme" }, attempt: 5, error: "gave up")
        10.times do
          eventually { expect(connection.message_count(dead)).to eq(3) }
          expect(replay(from: dead, dry_run: true)).to have_attributes(total: 3, replayed: 3)
        end

        eventually { expect(connection.message_count(dead)).to eq(3) }
        seen = drain(connection, dead)
        expect(seen.map { |message| Integer(message.body) }).to contain_exactly(1, 2, 3)
        expect(seen.map(&:headers)).to all(include("tenant" => "acme", "x-acemq-attempt" => 5, "x-acemq-error" => "gave up"))
        expect(seen.flat_map { |message| message.headers.keys }.grep(/replay/)).to be_empty
      end

      it "puts back what was counted beside what was not" do
        connection.publish_all([1, 2], to: dead)
        10.times do |turn|
          connection.publish(turn + 3, to: dead)
          eventually { expect(connection.message_count(dead)).to eq(turn + 3) }
          replay(from: dead, dry_run: true)
        end

        expect(numbers(dead, 12)).to match_array(1..12)
      end

      it "loses nothing however often it cannot be moved" do
        full = new_queue(connection, arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" })
        connection.publish(0, to: full)
        connection.publish_all((1..3).to_a, to: dead)
        10.times do |turn|
          eventually { expect(connection.message_count(dead)).to eq(3) }
          target = turn.even? ? full : "spec.nosuch"
          expect { replay(from: dead, routing_key: target) }.to raise_error(AceMQ::AMQP::Patterns::ReplayFailed)
        end

        expect(numbers(dead, 3)).to contain_exactly(1, 2, 3)
      end

      it "loses nothing however often the filter fails, or takes too long" do
        connection.publish_all((1..3).to_a, to: dead)
        10.times do |turn|
          eventually { expect(connection.message_count(dead)).to eq(3) }
          failing = turn.even? ? -> { raise "bug" } : -> { sleep }
          expect { Timeout.timeout(0.2) { replay(from: dead) { failing.call } } }.to raise_error(/bug|expired/)
        end

        expect(numbers(dead, 3)).to contain_exactly(1, 2, 3)
      end

      it "loses nothing of what a filter passes by, and moves the rest without its count" do
        connection.publish_all((1..3).to_a, to: dead)
        10.times do
          eventually { expect(connection.message_count(dead)).to eq(3) }
          replay(from: dead) { false }
        end
        eventually { expect(connection.message_count(dead)).to eq(3) }
        expect(replay(from: dead) { |message| message.payload == 2 }).to have_attributes(replayed: 1, skipped: 2)

        expect(drain(connection, queue).map { |message| message.headers["x-delivery-count"] }).to eq([nil])
        expect(numbers(dead, 2)).to contain_exactly(1, 3)
      end
    end

    it "leaves a long queue ready for the next message", :long do
      connection.publish_all((1..20_000).to_a, to: dead)
      replay(from: dead, dry_run: true)

      connection.publish(0, to: dead)
      expect(connection.message_count(dead)).to eq(20_001)
    end

    describe "whose link is lost" do
      watched = Struct.new(:inbox, :pulled) do
        def pull(queue)
          inbox.pull(queue).tap { |delivery| pulled << delivery }
        end
      end
      let(:proxy) { AceMQ::SpecSupport::Proxy.new(URI(broker.url).port) }
      let(:fragile) { open_connection(proxy.url(broker.url)) }
      let(:pulled) { [] }

      before do
        connection.publish_all((1..6).to_a, to: dead)
        queue
        seen = pulled
        allow(fragile.transport).to receive(:inbox).and_wrap_original do |inbox, &block|
          inbox.call { |opened| block.call(watched.new(opened, seen)) }
        end
        cleanups << -> { proxy.close }
      end

      def cut
        proxy.cut
        eventually { expect(pulled.last).not_to be_alive }
      end

      def failed(**options, &filter)
        described_class.replay(fragile, from: dead, **options, &filter)
      rescue AceMQ::AMQP::Patterns::ReplayFailed => e
        e
      end

      def numbers(name, count)
        eventually { expect(connection.message_count(name)).to eq(count) }
        drain(connection, name).map { |message| Integer(message.body) }
      end

      it "does not count again what was held, and comes back" do
        seen = []
        failure = failed do |message|
          seen << message.payload
          cut if seen.size == 4
          message.payload == 2
        end

        expect(failure).to be_a(AceMQ::AMQP::Patterns::ReplayFailed).and have_attributes(scope: :connection)
        expect(failure.result).to have_attributes(replayed: 1, skipped: 3, ended: :failed)
        expect(seen).to eq([1, 2, 3, 4])
        expect([numbers(queue, 1), numbers(dead, 5)]).to eq([[2], [1, 3, 4, 5, 6]])
      end

      it "counts nothing twice on a dry run either" do
        failure = failed(dry_run: true) do |message|
          cut if message.payload == 3
          true
        end

        expect(failure.result).to have_attributes(replayed: 3, ended: :failed)
      end

      it "does not copy what the broker hands out again" do
        failure = failed do |message|
          cut if message.payload == 3
          true
        end

        expect(failure.result).to have_attributes(replayed: 2, ended: :failed)
        expect([numbers(queue, 2), numbers(dead, 4)]).to eq([[1, 2], [3, 4, 5, 6]])
      end

      it "says of which message there are two now" do
        copies = 0
        allow(fragile.transport).to receive(:publish_copy).and_wrap_original do |publish, *arguments, **options|
          publish.call(*arguments, **options).tap { cut if (copies += 1) == 2 }
        end
        failure = failed

        expect(failure.message).to match(/after 2 of 6 messages.*the last of them.*two of it/)
        expect([numbers(queue, 2), numbers(dead, 5)]).to eq([[1, 2], [2, 3, 4, 5, 6]])
      end

      it "does not say that it is finished before the broker has heard so" do
        copies = 0
        allow(fragile.transport).to receive(:publish_copy).and_wrap_original do |publish, *arguments, **options|
          publish.call(*arguments, **options).tap { proxy.stall(:up) if (copies += 1) == 6 }
        end
        failure = failed
        proxy.cut

        expect(failure.result).to have_attributes(replayed: 6, ended: :failed)
        expect([numbers(queue, 6), numbers(dead, 1)]).to eq([[1, 2, 3, 4, 5, 6], [6]])
      end
    end

    it "takes away what the broker knows of the way of a message, which might end it there" do
      way = { "count" => 1, "reason" => "expired", "queue" => queue, "exchange" => "", "routing-keys" => [queue] }
      connection.publish(1, to: dead, headers: { "x-death" => [way] })
      replay(from: dead)

      expect(drain(connection, queue).first.headers).not_to have_key("x-death")
    end

    it "says that a queue does not exist" do
      expect { replay(from: "spec.nosuch.dlq") }
        .to raise_error(AceMQ::AMQP::Patterns::ReplayFailed, /no queue 'spec.nosuch.dlq'/)
    end

    it "has what a consumer gave up handled again" do
      handled = Thread::Queue.new
      broken = true
      connection.consume(queue) do |message|
        next AceMQ::AMQP::Ack.reject("broken") if broken

        handled << [message.payload, message.attempt, message.envelope.error]
        AceMQ::AMQP::Ack.accept
      end
      cleanups << -> { connection.delete_queue("#{queue}.parked") }
      dead
      connection.publish_all([1, 2], to: queue, attempt: 1)
      eventually { expect(connection.message_count(dead)).to eq(2) }
      broken = false
      replay(from: dead)

      eventually { expect(handled.size).to eq(2) }
      expect(Array.new(2) { handled.pop }).to contain_exactly([1, 1, ""], [2, 1, ""])
    end
  end
end
