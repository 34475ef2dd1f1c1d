# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Consuming::Declared, :consuming do
  subject(:declared) { described_class.new(fake_connection, ladder) }

  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:ladder) { AceMQ::AMQP::RetryLadder.for("orders", AceMQ::AMQP::RetryPolicy.fixed(2, 60)) }
  let(:told) { [] }

  before do
    transport.declare_queue("orders")
    allow(AceMQ::AMQP::Log).to receive(:warn) { |text| told << text }
  end

  # Has a declaration fail, so many times.
  def refuse(operation, name, times: 1_000, error: AceMQ::AMQP::TransportError.new("refused"))
    transport.singleton_class.prepend(Module.new do
      define_method(operation) do |*arguments, **options|
        wanted = [*arguments, options[:queue]].include?(name)
        raise error if wanted && (times -= 1) >= 0

        super(*arguments, **options)
      end
    end)
  end

  it "has the ladder and the dead letters declared" do
    declared.declare

    expect(transport.declared_queues.map(&:name)).to eq(%w[orders orders.retry.1m orders.dlq orders.parked])
    expect(declared).to be_usable(ladder.rungs.first)
    expect(told).to be_empty
  end

  it "uses no rung that was declared otherwise" do
    refuse(:declare_queue, "orders.retry.1m")
    declared.declare

    expect(declared).not_to be_usable(ladder.rungs.first)
    expect(told).to contain_exactly("refused; retries of 60.0 s wait in the consumer")
  end

  it "uses no rung without the way back" do
    refuse(:declare_exchange, "acemq.retry")
    declared.declare

    expect(declared).not_to be_usable(ladder.rungs.first)
    expect(transport.declared_queues.map(&:name)).to include("orders.dlq")
  end

  it "takes a connection that was lost for a moment for no refusal" do
    refuse(:bind, "orders", times: 1)
    declared.declare

    expect(declared).to be_usable(ladder.rungs.first)
    expect(told).to be_empty
  end

  it "uses a dead-letter queue that was declared otherwise" do
    transport.declare_queue("orders.dlq")
    refuse(:declare_queue, "orders.dlq")

    expect { declared.declare }.not_to raise_error
    expect(told).to contain_exactly("refused; it is used as it is")
  end

  it "does not start without a dead-letter queue: what it gives up would have no place" do
    refuse(:declare_queue, "orders.dlq")

    expect { declared.declare }.to raise_error(AceMQ::AMQP::TransportError, "refused")
  end

  it "does not start while the broker cannot be asked" do
    refuse(:declare_exchange, "acemq.dlx")
    transport.define_singleton_method(:queue_exists?) { |_| raise AceMQ::AMQP::TransportError, "gone" }

    expect { declared.declare }.to raise_error(AceMQ::AMQP::TransportError, "refused")
  end

  it "puts back what is ours, and nothing else" do
    expect([declared.restore("orders.dlq"), declared.restore("orders.retry.1m"), declared.restore("orders")]).to eq([true, true, false])
    expect(transport.declared_queues.map(&:name)).to eq(%w[orders orders.dlq orders.retry.1m])
    expect(transport.bindings.map { |binding| binding[:queue] }).to eq(%w[orders.dlq orders])
  end
end
