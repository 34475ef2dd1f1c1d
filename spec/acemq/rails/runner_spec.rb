# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing"
require "logger"
require "stringio"

RSpec.describe AceMQ::Rails::Runner do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:connection) { AceMQ::AMQP::Connection.new(transport: transport) }
  let(:config) { AceMQ::Rails::Configuration.new(shutdown_timeout: 0.2) }
  let(:log) { StringIO.new }
  let(:runner) { described_class.new(config: config, connection: connection, logger: Logger.new(log)) }

  let(:payments) do
    stub_const("PaymentsConsumer", Class.new(AceMQ::Rails::Consumer) do
      queue "shop.payments"

      attr_reader :seen

      def call(message)
        (@seen ||= []) << message
        raise message.payload["raise"] if message.payload["raise"]

        accept
      end
    end)
  end

  # @param work [#call] done before it accepts
  def consumer(queue, work = -> {}, &settings)
    Class.new(AceMQ::Rails::Consumer) do
      queue queue
      class_exec(&settings) if settings
      define_method(:call) { |_message| work.call.then { accept } }
    end
  end

  describe "#start" do
    it "subscribes each class, with what it says and nothing that it does not" do
      fast = consumer("fast") do
        concurrency 4
        prefetch 50
        arguments "x-priority": 5
        tag "fast-one"
      end
      runner.start([payments, fast])

      expect(transport.options_for("shop.payments")).to include(concurrency: 1, prefetch: 20, tag: "PaymentsConsumer")
      expect(transport.options_for("fast")).to include(concurrency: 4, prefetch: 50, tag: "fast-one",
                                                       arguments: { "x-priority" => 5 })
      expect(runner.consumers.map(&:queue)).to eq %w[shop.payments fast]
    end

    it "falls back on the settings of consumers" do
      config.consumer = { concurrency: 7 }
      runner.start([payments])

      expect(transport.options_for("shop.payments")).to include(concurrency: 7)
    end

    it "gives a class its retries and its threshold" do
      slow = consumer("slow") { retries max_attempts: 3, initial_delay: 60, broker_wait_threshold: 90 }
      runner.start([slow])

      expect(runner.consumers.first.retry_policy.schedule).to eq [60.0, 120.0]
      expect(runner.consumers.first.ladder.queues).to eq ["slow.retry.2m"]
    end

    it "handles every message with one instance" do
      instance = payments.new
      allow(payments).to receive(:new).once.and_return(instance)
      runner.start([payments])
      answers = Array.new(3) { transport.deliver("shop.payments", { "a" => 1 }) }

      expect(answers).to all(be_acked)
      expect(instance.seen.map(&:payload)).to eq [{ "a" => 1 }] * 3
    end

    it "declares the topology first, unless it is told not to" do
      config.topology = { queues: [{ name: "shop.payments" }] }
      runner.start([payments])
      expect(transport.declared_queues.map(&:name)).to include "shop.payments"

      other = AceMQ::Testing::FakeTransport.new
      config.declare_topology_on_boot = false
      described_class.new(config: config, connection: AceMQ::AMQP::Connection.new(transport: other),
                          logger: Logger.new(log)).start([payments])
      expect(other.declared_queues.map(&:name)).not_to include "shop.payments"
    end

    it "says which class's queue is missing, and takes back what was subscribed before" do
      transport.missing!("gone")
      gone = stub_const("GoneConsumer", consumer("gone"))

      expect { runner.start([payments, gone]) }
        .to raise_error(AceMQ::AMQP::TransportError, /GoneConsumer cannot consume gone: /)
      expect(transport.subscribed.map(&:open?)).to all(be false)
    end

    it "refuses to run nothing" do
      expect { runner.start([]) }.to raise_error(AceMQ::AMQP::ConfigurationError, %r{no consumer class to run.*app/consumers})
    end

    it "writes a failing handler to the log, with its message" do
      runner.start([payments])
      transport.deliver("shop.payments", { "raise" => "declined" }, id: "m-1")

      expect(log.string).to match(/acemq: PaymentsConsumer failed on message m-1 of shop\.payments, attempt 1: RuntimeError: declined/)
    end

    it "writes a handler that is not written yet to the log" do
      runner.start([Class.new(AceMQ::Rails::Consumer) { queue "unwritten" }])
      transport.deliver("unwritten")

      expect(log.string).to match(/NotImplementedError: .* must define call/)
    end

    it "warns of more handlers than database connections" do
      AceMQ::SpecSupport::Database.connect(:sqlite, pool: 2)
      runner.start([consumer("many") { concurrency 3 }])
      expect(log.string).to include "3 handlers share 2 database connections"
    ensure
      AceMQ::SpecSupport::Database.disconnect
    end
  end

  describe "within Rails" do
    let(:executor) { Class.new { def self.wrap = yield } }
    let(:reporter) { Struct.new(:reports) { def report(error, **facts) = reports << [error.message, facts] }.new([]) }

    before do
      application = Struct.new(:executor, :config).new(executor, Struct.new(:cache_classes).new(true))
      stub_const("Rails", Struct.new(:application, :error, :logger).new(application, reporter, nil))
    end

    it "calls each handler in the executor" do
      allow(executor).to receive(:wrap).and_call_original
      runner.start([payments])
      2.times { transport.deliver("shop.payments") }

      expect(executor).to have_received(:wrap).twice
    end

    it "reports a failure with what it was about, and lets it be retried" do
      config.consumer = { max_attempts: 2 }
      runner.start([payments])
      transport.deliver("shop.payments", { "raise" => "declined" }, id: "m-1", attempt: 3)

      expect(reporter.reports).to eq [["declined", { handled: false, severity: :error, context: {
        consumer: "PaymentsConsumer", queue: "shop.payments", message_id: "m-1", attempt: 3
      } }]]
      expect(transport.published_to("shop.payments.dlq").size).to eq 1
    end

    it "warns of code that is reloaded" do
      ::Rails.application.config.cache_classes = false
      runner.start([payments])

      expect(log.string).to include "code reloading is on"
    end
  end

  describe "#drain" do
    it "closes the connection it ran on, and says that all was finished" do
      runner.start([payments])

      expect(runner.drain).to be true
      expect(transport).not_to be_open
      expect(log.string).to include "acemq: everything is finished"
      expect(runner.drain).to be true
    end

    it "gives up at its deadline, and says what was not finished" do
      stuck = Thread::Queue.new
      runner.start([consumer("slow", -> { stuck.pop })])
      handler = Thread.new { transport.deliver("slow") }
      eventually { expect(stuck.num_waiting).to eq 1 }

      expect(elapsed { expect(runner.drain).to be false }).to be_between(0.2, 2)
      expect(log.string).to match(/not everything was finished: .*DrainTimeout: .*1 of slow/)
    ensure
      stuck << true
      handler&.join
    end

    it "does not raise what closing raises" do
      transport.define_singleton_method(:close) { |**| raise "stuck" }
      runner.start([payments])

      expect(runner.drain).to be false
      expect(log.string).to include "RuntimeError: stuck"
    end

    it "has the process forget its own connection" do
      AceMQ::Rails.connection = connection
      runner = described_class.new(config: config, logger: Logger.new(log)).start([payments])

      expect(runner.drain).to be true
      expect(AceMQ::Rails.connection?(connection)).to be false
    ensure
      AceMQ::Rails.connection = nil
    end

    it "closes a relay that was started beside it before the connection" do
      closed = []
      transport.define_singleton_method(:close) { |**| closed << :transport }
      relay = Object.new.tap { |object| object.define_singleton_method(:close) { |**| closed << :relay } }
      connection.register(relay)
      runner.start([payments]).drain

      expect(closed).to eq %i[relay transport]
    end
  end

  describe "#run" do
    def running
      former = Signal.trap("TERM", "DEFAULT")
      thread = Thread.new { runner.run([payments]) }
      eventually { expect(transport.subscribed.size).to eq 1 }
      yield thread
    ensure
      thread&.kill
      Signal.trap("TERM", former)
    end

    it "ends at a signal, of which its handler only takes note" do
      running do |thread|
        Process.kill("TERM", Process.pid)

        expect(thread.value).to be true
        expect(log.string).to include "SIGTERM: finishing what is under way, 0.2 s at most"
        expect(Signal.trap("TERM", "DEFAULT")).to eq "DEFAULT"
      end
    end

    it "ends when it is told to" do
      running do |thread|
        runner.stop

        expect(thread.value).to be true
      end
    end

    it "leaves no trap behind when it cannot start" do
      before = Signal.trap("INT", "DEFAULT")
      Signal.trap("INT", before)

      expect { runner.run([]) }.to raise_error(AceMQ::AMQP::ConfigurationError)
      expect(Signal.trap("INT", before)).to eq before
    end
  end
end
