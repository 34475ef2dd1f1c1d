# frozen_string_literal: true

# A head that went nowhere is tried again together with what waits behind it. Should its queue be bound in that very
# moment, those behind it would arrive, and it would not.
RSpec.describe "A binding that appears in the middle of a batch", :broker do
  before(:context) { AceMQ::SpecSupport::Database.connect(:sqlite) }
  after(:context) { AceMQ::SpecSupport::Database.disconnect }
  before { make_outbox }

  let(:amqp) { open_connection }
  let(:queue) { new_queue(amqp) }
  let(:exchange) { "spec.#{SecureRandom.hex(6)}" }
  let(:proxy) { new_proxy }
  let(:through_proxy) { AceMQ::AMQP::Connection.open(proxy.url(broker.url)).tap { |connection| connections << connection } }
  let(:relay) { new_relay(through_proxy, batch: 1_000) }

  before do
    amqp.declare_exchange(exchange, kind: :direct, auto_delete: true)
    amqp.declare_queue(other = "#{queue}.other", queue_type: :classic, exclusive: true)
    amqp.bind(queue: other, exchange: exchange, routing_key: "something else")
  end

  def id(n) = format("m-%04d", n)

  # In the middle, or after a sweep that wrote no more than the head.
  def bind_in_the_middle_of(sweep)
    written = proxy.upstream
    sweeping = Thread.new(&sweep)
    eventually { expect(sweeping.status == false || proxy.upstream > written + 2_000_000).to be true }
    proxy.stall(:up)
    amqp.bind(queue: queue, exchange: exchange, routing_key: "late")
    proxy.resume
    sweeping.value
  end

  def put_large(count)
    payload = { filler: "x" * 30_000 }
    ActiveRecord::Base.transaction { count.times { |n| put(id(n), to: "late", exchange: exchange, payload: payload) } }
  end

  it "does not let what waits behind a held head pass it" do
    through_proxy
    put_large(500)
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)
    bind_in_the_middle_of(-> { sweep_quietly(relay) })
    3.times { sweep_quietly(relay) }

    expect(outbox.pending_count).to eq 0
    expect(ids_in(amqp, queue)).to eq(Array.new(500) { |n| id(n) })
  end
end
