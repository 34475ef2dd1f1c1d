# frozen_string_literal: true

# Applications test their consumers with fakes of their own, written after the family's: transports that know the seam
# and no more, deliveries that note how they were settled, and specs that look as soon as `handle` has returned.
RSpec.describe AceMQ::AMQP::Consumer, "with an application's own fakes" do
  subscription = Class.new do
    attr_reader :block

    def initialize(block)
      @block = block
      @open = true
    end

    def open? = @open
    def stop = @open = false
    def close = stop
    def cancel = stop
  end

  # As of the days before mandatory publishes and reply addresses.
  let(:transport) do
    Class.new do
      attr_reader :published, :subscribed, :declared_queues, :declared_exchanges, :bindings

      def initialize
        @published = []
        @subscribed = []
        @declared_queues = []
        @declared_exchanges = []
        @bindings = []
      end

      def publish(exchange:, routing_key:, body:, content_type: nil, message_id: nil, headers: {}, persistent: true)
        @published << { exchange: exchange, routing_key: routing_key, body: body, content_type: content_type,
                        message_id: message_id, headers: headers, persistent: persistent }
        message_id
      end

      define_method(:subscribe) do |queue, prefetch:, concurrency:, tag:, arguments:, &block|
        options = { prefetch: prefetch, concurrency: concurrency, tag: tag, arguments: arguments }
        subscription.new(block).tap { |made| @subscribed << { queue: queue, options: options, subscription: made } }
      end

      def declare_exchange(name, kind:, durable:, auto_delete:, arguments:)
        @declared_exchanges << [name, kind, durable, auto_delete, arguments]
      end

      def declare_queue(name, queue_type:, durable:, auto_delete:, exclusive:, arguments:)
        @declared_queues << [name, queue_type, durable, auto_delete, exclusive, arguments]
        name
      end

      def bind(queue:, exchange:, routing_key:) = @bindings << [queue, exchange, routing_key]
      def queue_exists?(_name) = true
      def open? = true
      def close = @closed = true

      def published_to(queue)
        published.select { |message| message[:exchange].empty? && message[:routing_key] == queue }
      end
    end.new
  end
  let(:connection) { AceMQ::AMQP::Connection.new(transport: transport) }
  let(:ack) { AceMQ::AMQP::Ack }
  let(:settled) { [] }

  def delivery(payload, headers = {})
    AceMQ::AMQP::Delivery.new(body: JSON.generate(payload), content_type: "application/json", routing_key: "orders",
                              message_id: "m-1", headers: headers, redelivered: false, reply_to: nil,
                              on_ack: -> { settled << :ack }, on_nack: ->(requeue) { settled << [:nack, requeue] })
  end

  def consume(**options, &handler)
    connection.consume("orders", **options, &handler)
  end

  it "accepts" do
    seen = nil
    consume { |message| (seen = message.payload["n"]) && ack.accept }.handle(delivery({ "n" => 1 }))

    expect([seen, settled]).to eq([1, [:ack]])
  end

  it "has published the retry when handle has returned, whatever it had to wait" do
    consume(retry_policy: AceMQ::AMQP::RetryPolicy.fixed(3, 0.05)) { raise "down" }.handle(delivery({}))

    expect(transport.published_to("orders").map { |message| message[:headers]["x-acemq-attempt"] }).to eq([2])
    expect(settled).to eq([:ack])
  end

  it "has published the message again when somebody else is at it" do
    consume { ack.in_progress(0.05) }.handle(delivery({}, "x-acemq-attempt" => 2))

    expect(transport.published_to("orders").map { |message| message[:headers]["x-acemq-attempt"] }).to eq([2])
    expect(settled).to eq([:ack])
  end

  it "waits in the broker for long, and sets aside" do
    consume(retry_policy: AceMQ::AMQP::RetryPolicy.fixed(2, 60)) { raise "down" }.tap do |consumer|
      consumer.handle(delivery({}))
      consumer.handle(delivery({}, "x-acemq-attempt" => 2))
    end

    expect(transport.published.map { |message| message[:routing_key] }).to eq(%w[orders.retry.1m orders.dlq])
    expect(transport.published.last[:headers]["x-acemq-error"]).to eq("gave up after 2 attempts: RuntimeError: down")
    expect(transport.declared_queues.map(&:first)).to eq(%w[orders.retry.1m orders.dlq orders.parked])
  end

  it "is driven by its subscription's block" do
    consume(prefetch: 5, tag: "billing") { ack.accept }
    subscribed = transport.subscribed.first
    subscribed[:subscription].block.call(delivery({}))

    expect(settled).to eq([:ack])
    expect(subscribed[:options]).to eq(prefetch: 5, concurrency: 1, tag: "billing", arguments: {})
  end

  it "is closed" do
    consumer = consume { ack.accept }
    connection.close(timeout: 1)

    expect(consumer).not_to be_running
  end

  it "returns from handle although its copy was refused, and leaves the delivery unsettled" do
    transport.define_singleton_method(:publish) { |**| raise AceMQ::AMQP::PublishingPausedError, "memory" }
    allow(AceMQ::AMQP::Log).to receive(:error)
    consume { ack.reject }.handle(delivery({}))

    expect(settled).to be_empty
    connection.close(timeout: 1)
  end
end
