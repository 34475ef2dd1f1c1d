# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing"
require "json"
require "rake"

RSpec.describe "the rake tasks of acemq" do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:config) { AceMQ::Rails::Configuration.new }

  around do |example|
    before = [AceMQ::Rails.config, Rake.application]
    AceMQ::Rails.config = config
    Rake.application = Rake::Application.new
    Rake::Task.define_task(:environment)
    load File.expand_path("../../../lib/acemq/rails/tasks.rake", __dir__)
    example.run
  ensure
    AceMQ::Rails.connection = nil
    AceMQ::Rails.config, Rake.application = before
  end

  before do
    AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport)
    stub_const("Rails", Struct.new(:application, :logger).new(Struct.new(:executor) { def eager_load! = nil }.new, nil))
  end

  # @return [Array(String, Integer)] what it printed, and the exit code
  def invoke(task)
    code = 0
    former = $stdout
    $stdout = output = StringIO.new
    begin
      Rake::Task[task].invoke
    rescue SystemExit => e
      code = e.status
    end
    [output.string, code]
  ensure
    $stdout = former
  end

  it "acemq:topology shows what it declares, declares it, and disconnects" do
    config.topology = { exchanges: [{ name: "shop-events" }], queues: [{ name: "shop.payments" }],
                        bindings: [{ queue: "shop.payments", exchange: "shop-events", routing_key: "order.#" }] }
    output, code = invoke("acemq:topology")

    expect(code).to eq 0
    expect(output.lines.size).to eq 3
    expect(output).to match(/shop-events.*\n.*shop\.payments.*\n.*order\.#/)
    expect(transport.declared_queues.map(&:name)).to include "shop.payments"
    expect(transport).not_to be_open
  end

  it "acemq:health prints JSON, and fails when the broker is down" do
    output, code = invoke("acemq:health")
    expect(code).to eq 0
    expect(JSON.parse(output)).to include("status" => "up")

    AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport.tap(&:close))
    Rake::Task["acemq:health"].reenable
    output, code = invoke("acemq:health")
    expect(code).to eq 1
    expect(JSON.parse(output)).to include("status" => "down")
  end

  it "acemq:consumers lists classes with what they say and what is so by default" do
    config.consumer = { concurrency: 2 }
    payments = Class.new(AceMQ::Rails::Consumer) do
      queue "shop.payments"
      retries max_attempts: 3, initial_delay: 1.5
      prefetch 7
    end
    mails = Class.new(AceMQ::Rails::Consumer) { queue "shop.mails" }
    { "PaymentsConsumer" => payments, "MailsConsumer" => mails }.each { |name, consumer| stub_const(name, consumer) }
    allow(AceMQ::Rails).to receive(:consumers).and_return([PaymentsConsumer, MailsConsumer])

    expect(invoke("acemq:consumers").first).to eq <<~TEXT
      queue          class             concurrency  prefetch  attempts  retries after (s)
      shop.mails     MailsConsumer     2            20        1
      shop.payments  PaymentsConsumer  2            7         3         1.5 3
    TEXT
  end

  it "acemq:consumers says so when there are none" do
    allow(AceMQ::Rails).to receive(:consumers).and_return([])

    expect(invoke("acemq:consumers").first).to eq "no consumer class is loaded that has a queue\n"
  end

  { true => 0, false => 75 }.each do |finished, expected|
    it "acemq:consume exits with #{expected} when #{"not " unless finished}everything was finished" do
      allow(AceMQ::Rails::Runner).to receive(:new).and_return(instance_double(AceMQ::Rails::Runner, run: finished))

      expect(invoke("acemq:consume").last).to eq expected
    end
  end
end
