# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns, ".ordered" do
  let(:ack) { AceMQ::AMQP::Ack }

  def message(id, headers = {})
    AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: id, headers: headers))
  end

  # A handler that says when it begins, and ends when it is told.
  def controlled(key)
    begun = Thread::Queue.new
    gates = Hash.new { |hash, id| hash[id] = Thread::Queue.new }
    handler = described_class.ordered(key) do |m|
      begun << m.id
      gates[m.id].pop
      ack.accept
    end
    [handler, begun, gates]
  end

  def in_thread(handler, message)
    Thread.new { handler.call(message) }.tap { |thread| eventually { expect(thread).to be_stop } }
  end

  it "handles one message of a key at a time, in the order in which they came" do
    handler, begun, gates = controlled("account")
    threads = %w[1 2 3].map { |id| in_thread(handler, message(id, "account" => "A")) }
    expect(begun.size).to eq 1
    %w[1 2 3].each { |id| gates[id] << :go }
    threads.each(&:join)

    expect(Array.new(3) { begun.pop }).to eq %w[1 2 3]
  end

  it "lets other keys, and messages without one, go beside" do
    handler, begun, gates = controlled("account")
    waiting = [message("a", "account" => "A"), message("b", "account" => "B"), message("n1"), message("n2", "account" => "")]
    threads = waiting.map { |m| in_thread(handler, m) }

    expect(Array.new(4) { begun.pop }).to match_array %w[a b n1 n2]
    waiting.each { |m| gates[m.id] << :go }
    expect(threads.map(&:value)).to all(be_accept)
  end

  it "goes on when a handler raises, and when one that waits is killed" do
    gate = Thread::Queue.new
    handler = described_class.ordered(->(m) { m.envelope.correlation_id }) do |m|
      gate.pop
      raise "failed" if m.id == "1"

      m.id
    end
    of_one_key = ->(id) { AceMQ::AMQP::Message.new(envelope: AceMQ::AMQP::Envelope.new(id: id, correlation_id: "c")) }
    first, killed, last = %w[1 2 3].map { |id| in_thread(handler, of_one_key.call(id)) }
    first.report_on_exception = false
    killed.kill.join
    2.times { gate << :go }

    expect { first.join }.to raise_error("failed")
    expect(last.value).to eq "3"
  end

  it "remembers no key that nobody waits for" do
    wrapped = AceMQ::AMQP::Patterns::OrderedHandler.new(->(m) { m.id }, ->(_) { ack.accept })
    10.times { |i| wrapped.call(message(i.to_s)) }

    expect(wrapped.instance_variable_get(:@lines)).to be_empty
  end

  it "is middleware too" do
    handler = described_class.with_ordering(:account).call(->(m) { m.id })

    expect(handler.call(message("1", "account" => "A"))).to eq "1"
    expect(handler).to be_lambda
  end

  it "refuses at construction what could only fail later" do
    expect { described_class.ordered("account") }.to raise_error(ArgumentError, /block/)
    [nil, "", 7, "x-acemq-id"].each do |key|
      expect { described_class.ordered(key) { ack.accept } }.to raise_error(ArgumentError, /name of an application's header/)
    end
  end

  describe "handed to a consumer of several threads" do
    let(:connection) { open_connection }
    let(:queue) { new_queue(connection) }
    let(:begun) { Thread::Queue.new }

    def send_to(queue, numbers, account = "A")
      connection.publish_all(numbers.to_a, to: queue, headers: account ? { "account" => account } : {})
    end

    def consume(&handler)
      connection.consume(queue, concurrency: 4, prefetch: 100, &handler)
    end

    def taken(count)
      Array.new(count) { Timeout.timeout(10) { begun.pop } }
    end

    it "keeps the order of the queue" do
      send_to(queue, 1..2_000)
      consume(&described_class.ordered("account") { |m| (begun << m.payload) && ack.accept })

      expect(taken(2_000)).to eq [*1..2_000]
    end

    it "keeps it although an earlier one is slow on its way to the handler" do
      overtaken = Thread::Queue.new
      connection.intercept_consume do |context|
        # As long as it takes to be overtaken, or to be sure that nobody will.
        Timeout.timeout(0.2) { overtaken.pop } if context.payload == 1
      rescue Timeout::Error
        nil
      end
      consume(&described_class.ordered("account") { |m| (begun << m.payload) && (overtaken << true) && ack.accept })
      send_to(queue, 1..3)

      expect(taken(3)).to eq [1, 2, 3]
    end

    it "lets other keys, and messages without one, go beside" do
      gate = Thread::Queue.new
      consume(&described_class.ordered("account") { |m| (begun << m.payload) && gate.pop && ack.accept })
      { 1 => "A", 2 => "A", 3 => "B", 4 => nil }.each { |number, account| send_to(queue, [number], account) }

      expect(taken(3)).to match_array [1, 3, 4]
      4.times { gate << :go }
      expect(taken(1)).to eq [2]
    end

    it "goes on after what fails before its key is known, and after a handler's thread has ended" do
      handler = described_class.ordered(->(m) { m.payload.fetch("account") }) do |m|
        begun << m.payload["n"]
        Thread.exit if m.payload["n"] == 1 && !m.redelivered
        ack.accept
      end
      connection.publish_all([{ "account" => "A", "n" => 1 }, {}, *(2..9).map { |n| { "account" => "A", "n" => n } }], to: queue)
      cleanups << -> { %w[dlq parked].each { |suffix| connection.delete_queue("#{queue}.#{suffix}") } }
      expect { consume(&handler) && expect(taken(10).tally).to(eq({ 1 => 2, **(2..9).to_h { |n| [n, 1] } })) }
        .to output(/KeyError|.*/).to_stderr
    end

    it "does not hold up a handler that is not ordered" do
      gate = Thread::Queue.new
      consume { |m| (begun << m.payload) && gate.pop && ack.accept }
      send_to(queue, 1..4)

      expect(taken(4)).to match_array [1, 2, 3, 4]
      4.times { gate << :go }
    end
  end

  describe "partitions" do
    # The published values of the 32 bit FNV-1a.
    it "go by FNV-1a, as in every language of the family" do
      hash = AceMQ::AMQP::Patterns::Partition.method(:hash_of)

      expect(["", "a", "foobar"].map(&hash)).to eq [0x811c9dc5, 0xe40c292c, 0xbf9cf968]
      expect(described_class.partition("o-1", 8)).to eq 0
      expect(described_class.partition("\u00e9", 1_000)).to eq described_class.partition("\u00e9".b, 1_000)
    end

    it "make routing keys" do
      expect(described_class.partitioned_routing_key("orders", "o-1", 8)).to eq "orders.0"
      expect(described_class.partitioned_routing_key("orders", 17, 1)).to eq "orders.0"
    end

    it "spread keys over all of them" do
      counts = Array.new(8_000) { |i| described_class.partition("order-#{i}", 8) }.tally

      expect(counts.keys).to match_array 0..7
      expect(counts.values).to all(be_between(700, 1_300))
    end

    it "are 1 or more" do
      [0, -1, 2.5, "8"].each do |count|
        expect { described_class.partition("k", count) }.to raise_error(ArgumentError, /1 partition or more/)
      end
    end
  end
end
