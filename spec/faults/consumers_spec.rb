# frozen_string_literal: true

require "bunny"
require "open3"

# What a consumer has to get through on a real broker.
RSpec.describe AceMQ::AMQP::Consumer do
  let(:connection) { open_connection }
  let(:ack) { AceMQ::AMQP::Ack }
  let(:effects) { Thread::Queue.new }
  let(:queue) { consumed_queue }

  before { allow(AceMQ::AMQP::Log).to receive(:info) }

  # With everything that a consumer declares around it.
  def consumed_queue(**options)
    new_queue(connection, **options).tap do |name|
      cleanups << -> { %w[dlq parked].each { |suffix| connection.delete_queue("#{name}.#{suffix}") } }
    end
  end

  def consume(queue, on: connection, **options, &handler)
    consumer = on.consume(queue, **options, &handler)
    cleanups << -> { consumer.ladder.queues.each { |rung| connection.delete_queue(rung) } }
    consumer
  end

  def policy(...)
    AceMQ::AMQP::RetryPolicy.fixed(...)
  end

  def all_of(queue)
    Array.new(queue.size) { queue.pop }
  end

  def unacknowledged(connection, queue)
    connection.close(timeout: 2)
    open_connection.message_count(queue)
  end

  # What any other client may send.
  def with_bunny
    session = Bunny.new(broker.url).start
    yield session.create_channel
  ensure
    session&.close
  end

  describe "late acks (case 16)" do
    it "are not sent to another channel than the delivery's; everything is handled, and the consumer goes on" do
      proxy = AceMQ::SpecSupport::Proxy.new(URI(broker.url).port)
      cleanups << -> { proxy.close }
      10.times { |i| connection.publish(i, to: queue) }
      gate = Thread::Queue.new
      consumer = consume(queue, on: open_connection(proxy.url(broker.url)), prefetch: 5, concurrency: 5) do |message|
        effects << message.payload
        gate.pop
        ack.accept
      end
      eventually { expect(effects.size).to eq(5) }
      proxy.cut
      gate.close

      eventually(20) { expect(connection.message_count(queue)).to eq(0) }
      eventually { expect(consumer).to have_attributes(in_flight: 0, running?: true) }
      eventually { expect(all_of(effects).uniq).to match_array(0..9) }
      connection.publish(10, to: queue)
      eventually { expect(effects.size).to eq(1) }
      consumer.cancel
      expect(connection.message_count(queue)).to eq(0)
    end
  end

  describe "a dead-letter queue that refuses (case 17)" do
    it "keeps what it has no room for where it was, until it has" do
      dead = new_queue(connection, "#{queue}.dlq", arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" })
      consuming = open_connection
      warnings = []
      allow(AceMQ::AMQP::Log).to receive(:warn) { |text| warnings << text }
      allow(AceMQ::AMQP::Log).to receive(:error)
      consumer = consume(queue, on: consuming) { ack.reject("poison") }
      2.times { |i| connection.publish(i, to: queue) }

      eventually { expect([connection.message_count(dead), consumer.waiting]).to eq([1, 1]) }
      expect(warnings).to contain_exactly(/#{dead}.*inequivalent arg.*used as it is/)
      first = drain(connection, dead).map(&:body)
      eventually { expect(connection.message_count(dead)).to eq(1) }
      expect(first + drain(connection, dead).map(&:body)).to contain_exactly("0", "1")
      expect(unacknowledged(consuming, queue)).to eq(0)
    end

    it "does not keep it from going back when the consumer ends" do
      dead = new_queue(connection, "#{queue}.dlq", arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" })
      allow(AceMQ::AMQP::Log).to receive_messages(warn: nil, error: nil)
      consumer = consume(queue) { ack.reject("poison") }
      2.times { |i| connection.publish(i, to: queue) }
      eventually { expect([connection.message_count(dead), consumer.waiting]).to eq([1, 1]) }
      consumer.cancel

      eventually { expect([connection.message_count(queue), connection.message_count(dead)]).to eq([1, 1]) }
    end

    it "does not use up the delivery limit of a quorum queue" do
      limited = consumed_queue(queue_type: :quorum, arguments: { "x-delivery-limit" => 1 })
      dead = new_queue(connection, "#{limited}.dlq", arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" })
      allow(AceMQ::AMQP::Log).to receive_messages(warn: nil, error: nil)
      numbers = AceMQ::AMQP::Telemetry::Registry.new
      consume(limited, on: open_connection(broker.url, telemetry: numbers)) { ack.reject("poison") }
      2.times { |i| connection.publish(i, to: limited) }
      eventually { expect(numbers["acemq.messages.set.aside.failed"]).to be >= 3 }

      expect(drain(connection, dead).size).to eq(1)
      eventually { expect(connection.message_count(dead)).to eq(1) }
    end

    it "is declared again when it was deleted" do
      consumer = consume(queue) { ack.reject("poison") }
      connection.delete_queue("#{queue}.dlq")
      connection.publish(1, to: queue)

      eventually { expect(connection.queue_exists?("#{queue}.dlq") && connection.message_count("#{queue}.dlq")).to eq(1) }
      eventually { expect(consumer.in_flight).to eq(0) }
    end
  end

  describe "counting attempts (case 18)" do
    let(:headers) do
      { "tenant" => "acme", "n" => 7, "ratio" => 1.5, "flag" => true, "none" => nil, "at" => Time.at(1_700_000_000),
        "bytes" => "\xFF\x00".b, "list" => ["a", 1, { "k" => false }], "x-acemq-future" => { "version" => 9 } }
    end
    let(:properties) do
      { content_type: "application/json", content_encoding: "identity", priority: 3, correlation_id: "c-1", reply_to: "answers",
        message_id: "m-1", timestamp: 1_700_000_001, type: "order", app_id: "shop" }
    end

    # @param delivered [Array] what bunny's basic_get returns
    def facts(delivered)
      own = delivered[1].to_h
      own.slice(*properties.keys).merge(timestamp: own[:timestamp].to_i, headers: own[:headers].slice(*headers.keys),
                                        body: delivered[2])
    end

    def expect_four_calls(added, calls: 4, **options)
      consume(queue, retry_policy: policy(4, 0.15), **options) do |message|
        effects << message.attempt
        raise IOError, "down"
      end
      expect_unchanged(dead_letter_of(headers.merge(added)))
      expect(all_of(effects)).to eq(((5 - calls)..4).to_a)
    end

    def dead_letter_of(headers)
      with_bunny do |channel|
        channel.default_exchange.publish('{"n":1}', routing_key: queue, headers: headers, **properties)
        eventually { expect(connection.message_count("#{queue}.dlq")).to eq(1) }
        channel.basic_get("#{queue}.dlq")
      end
    end

    def expect_unchanged(dead)
      expect(facts(dead)).to eq(properties.merge(headers: headers, body: '{"n":1}'))
      expect(dead[1].to_h[:delivery_mode]).to eq(2)
      expect(dead[1].to_h[:headers]["x-acemq-error"]).to eq("gave up after 4 attempts: IOError: down")
    end

    { "in the consumer" => {}, "in the broker" => { retry_threshold: 0.1 } }.each do |where, options|
      context "with waits #{where}" do
        it "depends on no header of the broker" do
          forged = [{ "count" => 90, "reason" => "expired", "queue" => queue, "exchange" => "", "routing-keys" => [queue] }]
          expect_four_calls({ "x-death" => forged }, **options)
        end

        { "-5" => -5, "200 digits" => "9" * 200, "none" => nil }.each do |what, value|
          it "begins at the first where it makes no sense (#{what})" do
            expect_four_calls(value ? { "x-acemq-attempt" => value } : {}, **options)
          end
        end

        # Libraries of the family may write it so: it is the second attempt, not nonsense.
        it "reads digits" do
          expect_four_calls({ "x-acemq-attempt" => "2" }, calls: 3, **options)
        end
      end
    end
  end

  describe "the ladder (case 19)" do
    it "lets a short delay pass a long one that began before it" do
      delays = AceMQ::AMQP::RetryPolicy.new(max_attempts: 5, initial_delay: 0.5, multiplier: 4)
      times = Thread::Queue.new
      consume(queue, retry_policy: delays, retry_threshold: 0.2, concurrency: 2) do |message|
        times << [message.payload, message.attempt, Process.clock_gettime(Process::CLOCK_MONOTONIC)]
        message.attempt > 2 ? ack.accept : ack.retry
      end
      connection.publish("slow", to: queue, attempt: 2)
      eventually { expect(times.size).to eq(1) }
      connection.publish("quick", to: queue, attempt: 1)

      eventually { expect(times.size).to be >= 3 }
      expect(all_of(times).first(3).map { |entry| entry.first(2) }).to eq([["slow", 2], ["quick", 1], ["quick", 2]])
    end

    it "is changed while messages wait in the old one" do
      first = consume(queue, retry_policy: AceMQ::AMQP::RetryPolicy.new(max_attempts: 4, initial_delay: 1, multiplier: 2),
                             retry_threshold: 0.2) { ack.retry }
      connection.publish("old", to: queue)
      eventually { expect(connection.message_count("#{queue}.retry.1s")).to eq(1) }
      first.cancel
      second = consume(queue, retry_policy: AceMQ::AMQP::RetryPolicy.new(max_attempts: 4, initial_delay: 1, multiplier: 3),
                              retry_threshold: 0.2) { |message| effects << message.attempt and ack.accept }

      expect(second.ladder.queues).to eq(%w[1s 3s 9s].map { |delay| "#{queue}.retry.#{delay}" })
      eventually { expect(effects.size).to eq(1) }
      expect(effects.pop).to eq(2)
    end

    it "is not used where somebody declared one of its queues otherwise" do
      new_queue(connection, "#{queue}.retry.500ms", arguments: { "x-message-ttl" => 600_000 })
      warnings = []
      allow(AceMQ::AMQP::Log).to receive(:warn) { |text| warnings << text }
      consume(queue, retry_policy: policy(2, 0.5), retry_threshold: 0.2) do |message|
        effects << message.attempt
        message.attempt == 2 ? ack.accept : ack.retry
      end
      connection.publish(1, to: queue)

      eventually { expect(effects.size).to eq(2) }
      expect(warnings).to contain_exactly(/retry.500ms.*inequivalent arg.*wait in the consumer/)
    end

    it "goes with a queue that another service declared in its own way" do
      plain = consumed_queue(arguments: { "x-max-length" => 1_000 })
      consume(plain) { |message| effects << message.payload and ack.accept }
      connection.publish(1, to: plain)

      eventually { expect(effects.size).to eq(1) }
    end
  end

  describe "a handler that raises anything at all (case 20)" do
    it "loses no thread by it" do
      endless = -> { endless.call }
      raising = { "not implemented" => -> { raise NotImplementedError }, "no such file" => -> { require "no/such/file" },
                  "deep" => endless, "thrown" => -> { throw :nobody } }
      consume(queue) do |message|
        raising[message.payload]&.call
        effects << message.payload
        ack.accept
      end
      [*raising.keys, "normal"].each { |payload| connection.publish(payload, to: queue) }

      eventually { expect(effects.size).to eq(1) }
      eventually { expect(connection.message_count("#{queue}.dlq")).to eq(raising.size) }
      expect(drain(connection, "#{queue}.dlq").map { |dead| dead.headers["x-acemq-error"] })
        .to match_array([/NotImplementedError/, /LoadError/, /SystemStackError/, /UncaughtThrowError/])
    end

    it "goes on after a handler has ended its thread, and handles that message again" do
      consume(queue) do |message|
        effects << message.redelivered?
        Thread.exit unless message.redelivered?
        ack.accept
      end
      connection.publish(1, to: queue)

      eventually { expect(effects.size).to eq(2) }
      expect(all_of(effects)).to eq([false, true])
    end

    it "ends the process when that is what it asks for, and gives the message back" do
      script = <<~RUBY
        require "acemq_native"
        connection = AceMQ::AMQP::Connection.open(ARGV.first)
        at_exit { connection.close(timeout: 5) }
        connection.consume(ARGV.last) { exit 3 }
        sleep 20
      RUBY
      connection.publish("stop", to: queue)
      _, status = Open3.capture2e(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", script, broker.url, queue)

      expect(status.exitstatus).to eq(3)
      eventually { expect(drain(connection, queue).map(&:body)).to eq(['"stop"']) }
      expect(connection.message_count("#{queue}.dlq")).to eq(0)
    end
  end

  describe "a queue that goes (case 21)" do
    it "is consumed again when it is back, and health says so meanwhile" do
      allow(AceMQ::AMQP::Log).to receive(:warn)
      consumer = consume(queue) { |message| effects << message.payload and ack.accept }
      expect(connection.health).to be_up
      connection.delete_queue(queue)
      eventually { expect(connection.health).to be_degraded.and have_attributes(detail: /consumer of #{queue} is not running: /) }
      connection.declare_queue(queue, queue_type: :classic)
      5.times { |i| connection.publish(i, to: queue) }

      eventually(15) { expect(effects.size).to eq(5) }
      expect(consumer).to be_running
      expect(connection.health).to be_up
    end
  end

  describe "a deploy" do
    it "lets handlers end, places what waits, and gives back what is not begun" do
      gate = Thread::Queue.new
      consuming = open_connection
      consume(queue, on: consuming, retry_policy: policy(3, 25), prefetch: 3) do |message|
        effects << message.payload
        next ack.retry if message.payload == "fails"
        next ack.in_progress(25) if message.payload == "busy"

        gate.pop
        ack.accept
      end
      connection.publish_all(%w[fails busy slow next], to: queue)
      eventually { expect(effects.size).to eq(3) }
      closing = Thread.new { consuming.close(timeout: 10) }
      eventually { expect(connection.message_count(queue)).to eq(3) } # the retry, the busy one, the next one
      gate << true
      closing.join

      left = drain(connection, queue).to_h { |delivery| [delivery.body, delivery.headers["x-acemq-attempt"]] }
      expect(left).to eq('"fails"' => 2, '"busy"' => 1, '"next"' => 1)
    end

    it "has the message of a handler that did not end handed out again, and its answer discarded" do
      gate = Thread::Queue.new
      consuming = open_connection
      consume(queue, on: consuming) do |message|
        effects << message.payload
        gate.pop
        ack.reject("too late")
      end
      connection.publish("slow", to: queue)
      eventually { expect(effects.size).to eq(1) }

      expect { consuming.close(timeout: 0.2) }.to raise_error(AceMQ::AMQP::DrainTimeout, /1 of #{queue}/)
      gate << true
      eventually { expect(connection.message_count(queue)).to eq(1) }
      expect(drain(connection, queue).map(&:redelivered)).to eq([true])
      expect(connection.message_count("#{queue}.dlq")).to eq(0)
    end
  end

  describe "a broker that blocks publishing" do
    it "has a retry held until it may be published, while acks go on" do
      broker.alarm!(false) # skips the example at once where the broker is not ours
      allow(AceMQ::AMQP::Log).to receive(:error)
      gate = Thread::Queue.new
      impatient = open_connection(broker.url, confirm_timeout: 1)
      consume(queue, on: impatient, retry_policy: policy(3, 0), concurrency: 2) do |message|
        effects << [message.payload, message.attempt]
        gate.pop
        message.payload == "again" && message.attempt == 1 ? ack.retry : ack.accept
      end
      connection.publish_all(%w[again once], to: queue)
      eventually { expect(effects.size).to eq(2) }
      under_alarm do
        gate.close
        eventually(20) { expect(impatient).to be_blocked }
        eventually { expect(broker.ctl("list_queues", "name", "messages_unacknowledged")).to match(/#{queue}\s+1$/) }
        expect(effects.size).to eq(2)
      end

      eventually(40) { expect(effects.size).to eq(3) }
      expect(all_of(effects).last).to eq(["again", 2])
    end
  end
end
