# frozen_string_literal: true

require "acemq/testing"
require "json"

# What the family's libraries have to have in common so that their consumers can share queues.
RSpec.describe "What is agreed between the family's consumers" do
  contract = JSON.parse(File.read(File.expand_path("../../fixtures/contract.json", __dir__)))

  def policy(said)
    name, numbers = said.except("giveUpAfter").first
    policy = AceMQ::AMQP::RetryPolicy.public_send(name, *numbers)
    said.key?("giveUpAfter") ? policy.give_up_after(said["giveUpAfter"]) : policy
  end

  def ms(seconds)
    (seconds * 1000).round
  end

  it "is the threshold, and the names of the exchanges" do
    expect(ms(AceMQ::AMQP::RetryLadder::DEFAULT_THRESHOLD)).to eq(contract["defaultBrokerWaitThresholdMillis"])
    expect(ms(AceMQ::AMQP::Connection::DEFAULT_RETRY_THRESHOLD)).to eq(contract["defaultBrokerWaitThresholdMillis"])
    expect(AceMQ::AMQP::Naming::DEAD_LETTER_EXCHANGE).to eq(contract.dig("exchanges", "deadLetter"))
    expect(AceMQ::AMQP::Naming::RETRY_EXCHANGE).to eq(contract.dig("exchanges", "retry"))
  end

  contract["schedules"].each do |entry|
    it "is the schedule of #{entry["policy"]}, and which of it waits in the broker" do
      policy = policy(entry["policy"])

      expect(policy.schedule.map { |delay| ms(delay) }).to eq(entry["delaysMillis"])
      expect(AceMQ::AMQP::RetryLadder.for("q", policy).rungs.map { |rung| ms(rung.delay) }).to eq(entry["rungsMillis"])
    end
  end

  contract["attempts"].each do |entry|
    it "is whether attempt #{entry["attempt"]} at the age of #{entry["ageMillis"]} ms is followed by another (#{entry["policy"]})" do
      delay = policy(entry["policy"]).next_delay(entry["attempt"], entry["ageMillis"] / 1000.0)

      expect(!delay.nil?).to be(entry["retries"])
    end
  end

  it "is the jitter" do
    policy = AceMQ::AMQP::RetryPolicy.fixed(2, 1).with_jitter(contract.dig("jitter", "factor"))
    delays = Array.new(500) { policy.jittered(1.0) }

    expect(delays).to all(be_between(contract.dig("jitter", "from"), contract.dig("jitter", "to")))
    expect(delays.max - delays.min).to be > 0.2
  end

  contract["waitsInBroker"].each do |entry|
    it "is where #{entry["delayMillis"]} ms are waited at a threshold of #{entry["thresholdMillis"]} ms" do
      expect(AceMQ::AMQP::RetryLadder.waits_in_broker?(entry["delayMillis"] / 1000.0, entry["thresholdMillis"] / 1000.0))
        .to be(entry["broker"])
    end
  end

  it "is the names of queues" do
    names = contract["names"]

    expect(AceMQ::AMQP::Naming.dead_letter_queue(names["queue"])).to eq(names["deadLetter"])
    expect(AceMQ::AMQP::Naming.parked_queue(names["queue"])).to eq(names["parked"])
    names["retry"].each do |delay, name|
      expect(AceMQ::AMQP::Naming.retry_queue(names["queue"], delay.to_i / 1000.0)).to eq(name)
    end
  end

  it "is the arguments of a rung, and no others" do
    delay = contract.dig("rung", "delayMillis") / 1000.0
    ladder = AceMQ::AMQP::RetryLadder.for("orders.new", AceMQ::AMQP::RetryPolicy.fixed(2, delay))

    expect(ladder.rungs.map(&:arguments)).to eq([contract.dig("rung", "arguments")])
  end

  describe "the topology" do
    let(:transport) { AceMQ::Testing::FakeTransport.new }
    let(:connection) { AceMQ::AMQP::Connection.new(transport: transport) }
    let(:policy_with_rung) { AceMQ::AMQP::RetryPolicy.fixed(2, 40) }

    def entries(kind, *declared_by)
      whole = JSON.parse(File.read(File.expand_path("../../fixtures/contract.json", __dir__)))
      whole.dig("topology", kind).select { |entry| declared_by.include?(entry["declaredBy"]) }
           .map { |entry| entry.except("declaredBy").transform_keys(&:to_sym) }
    end

    def declared
      { exchanges: transport.declared_exchanges.map { |e| { name: e.name, **e.options.slice(:kind, :durable) } },
        queues: transport.declared_queues.map do |queue|
          { name: queue.name, type: queue.options[:queue_type].to_s, arguments: queue.options[:arguments] }
        end,
        bindings: transport.bindings }
    end

    it "is declared by a Topology" do
      connection.apply(AceMQ::AMQP::Topology.new.queue("orders.new", dead_letter: true, retry_policy: policy_with_rung)
                                                .parked_queue("orders.new"))

      %i[exchanges queues bindings].each do |kind|
        expect(declared[kind]).to match_array(entries(kind.name, "both", "topology"))
      end
      expect(transport.declared_queues.map { |queue| queue.options[:durable] }).to all(be(true))
    end

    it "is declared by a consumer, but for its own queue" do
      connection.consume("orders.new", retry_policy: policy_with_rung) { AceMQ::AMQP::Ack.accept }

      %i[exchanges queues bindings].each do |kind|
        expect(declared[kind]).to match_array(entries(kind.name, "both", "consumer"))
      end
    end
  end
end
