# frozen_string_literal: true

# OpenTelemetry by as much of its API as is used: a current span, a propagator, tracers that remember their spans.
RSpec.describe AceMQ::AMQP::Tracing do
  include AceMQ::SpecSupport::Records

  let(:spans) { [] }

  before do
    spans = self.spans
    context = Struct.new(:trace) do
      def valid? = trace.match?(/\A00-\h{32}-\h{16}-\d\d\z/)
    end
    tracer = Class.new do
      define_method(:in_span) do |name, attributes:, links:, kind:, &block|
        spans << { name: name, attributes: attributes, links: links.map { |link| link.span_context.trace }, kind: kind }
        block.call(Object.new)
      end
    end
    propagation = Class.new do
      attr_accessor :current

      def inject(carrier) = current && carrier.update("traceparent" => current, "tracestate" => "shop=1")
      def extract(carrier) = carrier["traceparent"]
    end.new
    stub_const("OpenTelemetry", Module.new)
    stub_const("OpenTelemetry::Trace", Module.new)
    stub_const("OpenTelemetry::Trace::Link", Struct.new(:span_context))
    OpenTelemetry.define_singleton_method(:propagation) { propagation }
    OpenTelemetry.define_singleton_method(:tracer_provider) { Struct.new(:it) { def tracer(_name) = it }.new(tracer.new) }
    OpenTelemetry::Trace.define_singleton_method(:current_span) do |carried|
      Struct.new(:context).new(context.new(carried.to_s))
    end
  end

  let(:trace) { "00-#{"a" * 32}-#{"b" * 16}-01" }
  let(:amqp) { AceMQ::AMQP::Connection.new(transport: transport) }
  let(:transport) { AceMQ::SpecSupport::ScriptedTransport.new }

  def recorded(id, trace)
    OpenTelemetry.propagation.current = trace
    AceMQ::AMQP::Patterns.record(amqp, {}, to: "order.placed", exchange: "shop", id: id)
  ensure
    OpenTelemetry.propagation.current = nil
  end

  it "takes the trace along from the record to the handler, by links" do
    store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
    store.add(recorded("a", trace))
    AceMQ::AMQP::Patterns::OutboxRelay.new(amqp, store).sweep
    sent = transport.published.first
    expect(sent.headers).to include("traceparent" => trace, "tracestate" => "shop=1")

    described_class.handling(sent.headers, queue: "shop.orders", id: "a") { nil }
    expect(spans).to match [
      { name: "publish shop/order.placed", kind: :producer, links: [trace],
        attributes: include("messaging.system" => "rabbitmq", "messaging.batch.message_count" => 1) },
      { name: "process shop.orders", kind: :consumer, links: [trace],
        attributes: include("messaging.source.name" => "shop.orders", "messaging.message.id" => "a") }
    ]
  end

  on_each_database(:sqlite) do
    it "goes through the table, also for a record that was made elsewhere" do
      make_outbox
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
      store.add(recorded("a", trace))
      OpenTelemetry.propagation.current = trace.tr("a", "c")
      store.add(record("b"))
      OpenTelemetry.propagation.current = nil
      store.add(record("c"))

      expect(store.peek.to_h { |record| [record.id, record.headers["traceparent"]] })
        .to eq("a" => trace, "b" => trace.tr("a", "c"), "c" => nil)
    end
  end

  it "links one span to all the origins of a batch, as many as there may be" do
    pipeline = AceMQ::SpecSupport::ScriptedPipeline.new
    store = AceMQ::SpecSupport::FakeClaimingStore.new
    200.times { |n| store.add(record("r#{n}", to: "k#{n % 2}").tap { |one| one.headers["traceparent"] = trace }) }
    AceMQ::AMQP::Patterns::OutboxRelay.new(pipeline, store, batch: 200).sweep

    expect(spans.map { |span| [span[:name], span[:links].size] }).to eq [["publish outbox", 128]]
  end

  it "keeps the trace that a record has, and invents none" do
    OpenTelemetry.propagation.current = trace.tr("a", "c")
    expect(described_class.carried("traceparent" => trace)).to eq("traceparent" => trace)
    OpenTelemetry.propagation.current = nil
    expect(described_class.carried("a" => 1)).to eq("a" => 1)
    described_class.handling({ "traceparent" => "junk" }, queue: "q", id: "a") { nil }
    described_class.handling(nil, queue: "q", id: "a") { nil }
    expect(spans.map { |span| span[:links] }).to eq [[], []]
  end

  it "answers what its block does, and lets through what it raises" do
    expect(described_class.handling({}, queue: "q", id: "a") { 7 }).to eq 7
    expect { described_class.publishing([record("a")]) { raise IOError } }.to raise_error(IOError)
  end

  it "does nothing without OpenTelemetry" do
    hide_const("OpenTelemetry")

    expect(described_class).not_to be_on
    expect(described_class.publishing([]) { 1 } + described_class.handling({}, queue: "q", id: "a") { 2 }).to eq 3
    expect(described_class.carried("a" => 1)).to eq("a" => 1)
  end
end
