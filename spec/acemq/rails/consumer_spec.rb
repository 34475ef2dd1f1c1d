# frozen_string_literal: true

require "acemq/rails"

RSpec.describe AceMQ::Rails::Consumer do
  let(:base) do
    Class.new(described_class) do
      queue "shop.base"
      concurrency 4
      prefetch 50
      arguments "x-priority": 5
      retries max_attempts: 5, initial_delay: 1, max_delay: 300, jitter: 0.1, give_up_after: 60, broker_wait_threshold: 10
      tag "base"
    end
  end

  it "says what it was told" do
    expect(base).to have_attributes(queue: "shop.base", concurrency: 4, prefetch: 50, tag: "base", runnable?: true,
                                    arguments: { "x-priority" => 5 }, broker_wait_threshold: 10)
    expect(base.retries).to have_attributes(max_attempts: 5, initial_delay: 1.0, max_delay: 300.0, jitter_factor: 0.1,
                                            max_message_age: 60.0)
  end

  describe "with config.acemq.consumer" do
    around do |example|
      before = AceMQ::Rails.config
      AceMQ::Rails.config = AceMQ::Rails::Configuration.new
      example.run
    ensure
      AceMQ::Rails.config = before
    end

    it "fills what the keywords of retries leave open, also when it is said after the class was loaded" do
      consumer = Class.new(described_class) { retries max_attempts: 3, initial_delay: 1 }
      AceMQ::Rails.config.consumer = { jitter: 0.2, max_delay: 9, initial_delay: 5 }

      expect(consumer.retries).to have_attributes(max_attempts: 3, initial_delay: 1.0, max_delay: 9.0, jitter_factor: 0.2)
      expect(described_class.retries).to be_nil
    end
  end

  it "inherits everything but its queue and its tag" do
    child = Class.new(Class.new(base))

    expect(child).to have_attributes(queue: nil, tag: nil, runnable?: false, concurrency: 4, prefetch: 50,
                                     retries: base.retries, broker_wait_threshold: 10)
  end

  it "overrides what it inherits without touching its parent" do
    child = Class.new(base) { concurrency 1 }

    expect([child.concurrency, base.concurrency]).to eq([1, 4])
  end

  it "is called by its class's name" do
    stub_const("PaymentsConsumer", Class.new(described_class))

    expect(PaymentsConsumer.tag).to eq("PaymentsConsumer")
  end

  it "takes a policy instead of keywords" do
    policy = AceMQ::AMQP::RetryPolicy.fixed(3, 5)

    expect(Class.new(described_class) { retries policy }.retries).to be(policy)
  end

  it "says nothing it was not told" do
    expect(described_class).to have_attributes(queue: nil, concurrency: nil, prefetch: nil, codec: nil, retries: nil,
                                               arguments: nil, broker_wait_threshold: nil)
  end

  {
    "an empty queue" => [-> { queue "" }, /queue of .* is empty/],
    "a queue that is too long" => [-> { queue "q" * 256 }, /256 bytes/],
    "no thread at all" => [-> { concurrency 0 }, /concurrency/],
    "a prefetch that is no number" => [-> { prefetch "many" }, /prefetch/],
    "a codec that is none" => [-> { codec :json }, /not a codec/],
    "a retry keyword that does not exist" => [-> { retries attempts: 3 }, /no attempts; there are max_attempts/],
    "a policy with keywords" => [-> { retries AceMQ::AMQP::RetryPolicy.none, max_attempts: 2 }, /not both/],
    "a policy that is none" => [-> { retries 5 }, /must be a RetryPolicy/]
  }.each do |what, (setting, message)|
    it "refuses #{what}" do
      expect { Class.new(described_class, &->(klass) { klass.instance_exec(&setting) }) }.to raise_error(ArgumentError, message)
    end
  end

  it "has answers for its handler only" do
    handler = Class.new(described_class) do
      def call(message) = { accept: accept, retry: retry_later("r"), reject: reject("x"), park: park }.fetch(message)
    end.new

    expect(%i[accept retry reject park].map { |answer| handler.call(answer).action }).to eq(%i[accept retry reject park])
    expect(handler.call(:retry).error).to eq("r")
    expect(handler).not_to respond_to(:accept)
    expect(described_class::Ack).to be(AceMQ::AMQP::Ack)
  end

  it "asks for a call" do
    expect { described_class.new.call(nil) }.to raise_error(NotImplementedError, /must define call/)
  end
end
