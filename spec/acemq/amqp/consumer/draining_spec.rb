# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Consumer, "at its end", :consuming do
  let(:transport) { AceMQ::SpecSupport::Consuming::RefusingTransport.new }
  let(:connection) { fake_connection }
  let(:ack) { AceMQ::AMQP::Ack }
  let(:going) { Thread::Queue.new }
  let(:begun) { Thread::Queue.new }

  # A handler that ends when it is told to, with what it is told.
  def consume(queue = "orders", **options)
    connection.consume(queue, **options) do
      begun << true
      answer = going.pop
      answer.is_a?(Exception) ? raise(answer) : answer
    end
  end

  def deliver(queue = "orders", **options)
    delivery = nil
    thread = Thread.new { delivery = transport.deliver(queue, {}, **options) }
    begun.pop
    threads << thread
    -> { thread.join && delivery }
  end

  def threads
    @threads ||= []
  end

  after do
    threads.size.times { going << ack.accept }
    threads.each(&:join)
  end

  describe "#close" do
    it "waits for handlers, and settles what they answer" do
      consume
      delivery = deliver
      closing = Thread.new { connection.close(timeout: 5) }
      eventually { expect(transport.subscribed.first).not_to be_open }
      going << ack.accept

      closing.join
      expect(delivery.call).to be_acked
      expect(transport).not_to be_open
      expect(connection.consumers).to be_empty
    end

    it "gives up at the deadline, closes everything, and says how many of which queue were left" do
      2.times { consume }
      consume("payments")
      2.times { deliver }
      deliver("payments")

      expect { connection.close(timeout: 0.1) }.to raise_error(AceMQ::AMQP::DrainTimeout, /2 of orders, 1 of payments/) { |error|
        expect(error).to have_attributes(stranded: { "orders" => 2, "payments" => 1 }, timeout: 0.1)
      }
      expect(transport).not_to be_open
    end

    it "waits for as long as it takes, where no end is given" do
      consume
      delivery = deliver
      closing = Thread.new { connection.close(timeout: Float::INFINITY) }
      eventually { expect(transport.subscribed.first).not_to be_open }
      eventually { expect(closing).to be_stop }
      going << ack.accept

      closing.join
      expect(delivery.call).to be_acked
    end

    it "does not wait at all with a timeout of 0" do
      consume
      deliver

      expect { connection.close(timeout: 0) }.to raise_error(AceMQ::AMQP::DrainTimeout)
    end

    [-> { AceMQ::AMQP::Ack.accept }, -> { AceMQ::AMQP::Ack.reject("late") }, -> { AceMQ::AMQP::Ack.retry },
     -> { AceMQ::AMQP::Ack.in_progress(0) }].each do |answer|
      it "discards what a handler answers after that (#{answer.call.action})" do
        consume(retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 0))
        delivery = deliver
        expect { connection.close(timeout: 0) }.to raise_error(AceMQ::AMQP::DrainTimeout)
        going << answer.call

        expect(delivery.call).not_to be_settled
        expect(transport.published).to be_empty
      end
    end

    it "stops all consumers before it waits for one, and raises the first failure after all are closed" do
      consume
      consume("payments")
      log = []
      transport.subscribed.each do |one|
        one.define_singleton_method(:stop) { log << [:stop, queue] and super() }
        one.define_singleton_method(:close) { |timeout:| log << [:close, queue] and raise "#{queue} #{timeout >= 0}" }
      end

      expect { connection.close(timeout: 1) }.to raise_error("orders true")
      expect(log.first(2)).to contain_exactly([:stop, "orders"], [:stop, "payments"])
      expect(log.last(2)).to contain_exactly([:close, "orders"], [:close, "payments"])
      expect(transport).not_to be_open
    end
  end

  describe "a message that waits" do
    it "for a retry is placed at once: a deploy does not wait for a backoff" do
      connection.consume("orders", retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 25)) { ack.retry }
      deliveries = Array.new(3) { transport.deliver("orders") }
      connection.close(timeout: 5)

      expect(deliveries.map(&:answers)).to all(eq([:ack]))
      expect(transport.published_to("orders").map { |copy| copy.headers["x-acemq-attempt"] }).to eq([2, 2, 2])
    end

    it "because somebody else is at it goes back" do
      connection.consume("orders") { ack.in_progress(25) }
      delivery = transport.deliver("orders")
      connection.close(timeout: 5)

      expect(delivery.answers).to eq([:requeue])
      expect(transport.published).to be_empty
    end

    it "for a queue that takes nothing is left to its channel" do
      transport.refusals["orders.dlq"] = AceMQ::AMQP::PublishError.new("nacked", nacked: true)
      allow(AceMQ::AMQP::Log).to receive(:error)
      connection.consume("orders") { ack.reject }
      delivery = transport.deliver("orders")
      connection.close(timeout: 5)

      expect(delivery).not_to be_settled
      expect(transport.published).to be_empty
      expect(transport.refused).to eq(2) # when it was rejected, and once at the end
    end

    it "does not wait when its handler ends during the drain" do
      consume(retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 25))
      delivery = deliver
      closing = Thread.new { connection.close(timeout: 5) }
      eventually { expect(transport.subscribed.first).not_to be_open }
      going << ack.retry
      closing.join

      expect(delivery.call).to be_acked
      expect(transport.published_to("orders").size).to eq(1)
    end
  end

  describe "#cancel" do
    it "ends one consumer, and not the connection" do
      consumer = consume
      consume("payments")
      delivery = deliver
      cancelling = Thread.new { consumer.cancel(timeout: 5) }
      going << ack.accept
      cancelling.join

      expect(delivery.call).to be_acked
      expect(consumer).not_to be_running
      expect(connection.consumers.map(&:queue)).to eq(["payments"])
      expect(transport).to be_open
    end

    it "waits for as long as it takes, where no end is given" do
      consumer = consume
      delivery = deliver
      cancelling = Thread.new { consumer.cancel(timeout: 1e20) }
      eventually { expect(transport.subscribed.first).not_to be_open }
      eventually { expect(cancelling).to be_stop }
      going << ack.accept

      cancelling.join
      expect(delivery.call).to be_acked
    end

    it "raises nothing at its deadline; how many still run can be asked" do
      consumer = consume
      deliver
      consumer.cancel(timeout: 0.05)

      expect(consumer.in_flight).to eq(1)
    end

    it "changes nothing when its timeout is none" do
      consumer = consume
      [nil, -1, Float::NAN, "5"].each do |timeout|
        expect { consumer.cancel(timeout: timeout) }.to raise_error(ArgumentError, /timeout must be seconds/)
      end

      expect(consumer).to be_running
      expect(connection.consumers).to eq([consumer])
    end

    it "that is interrupted leaves it to the connection, which waits for its handler" do
      consumer = consume
      delivery = deliver
      expect { Timeout.timeout(0.05) { consumer.cancel } }.to raise_error(Timeout::Error)
      expect(connection.consumers).to eq([consumer])

      closing = Thread.new { connection.close(timeout: 5) }
      eventually { expect(closing).to be_stop }
      going << ack.accept
      closing.join
      expect(delivery.call).to be_acked
    end

    it "that fails to close its subscription is not asked again" do
      consumer = consume
      transport.subscribed.first.define_singleton_method(:close) { |**| raise IOError, "gone" }

      expect { consumer.cancel }.to raise_error(IOError, "gone")
      expect(connection.consumers).to be_empty
    end
  end

  it "is left alone by a forked child" do
    consumer = consume
    deliver
    reader, writer = IO.pipe
    pid = fork do
      connection.close(timeout: 0)
      writer.write([consumer.running?, consumer.in_flight, connection.consumers.size].inspect)
    ensure
      exit!(0)
    end
    writer.close
    Process.wait(pid)

    expect(reader.read).to eq("[false, 0, 0]")
    expect(consumer).to be_running
  end
end
