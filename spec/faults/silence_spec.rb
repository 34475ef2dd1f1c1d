# frozen_string_literal: true

# What is still unconfirmed when a connection falls silent in the middle of its confirms is not the fault of where it
# was going: nothing was confirmed after it either.
RSpec.describe "A connection that falls silent between two confirms", :broker do
  before(:context) { AceMQ::SpecSupport::Database.connect(:sqlite) }
  after(:context) { AceMQ::SpecSupport::Database.disconnect }
  before { make_outbox }

  let(:amqp) { open_connection }
  let(:queues) { Array.new(4) { new_queue(amqp) } }
  let(:proxy) { new_proxy }
  let(:through_proxy) { AceMQ::AMQP::Connection.open(proxy.url(broker.url)).tap { |connection| connections << connection } }

  def sweep_until_silence
    sweeping = Thread.new { sweep_quietly(new_relay(through_proxy, batch: 2_000, confirm_timeout: 1)) }
    said = proxy.downstream
    eventually { expect(proxy.downstream).to be > said + 300 } # a dozen confirms and what comes before them
    proxy.stall(:down)
    sweeping.join
  ensure
    proxy.resume
  end

  it "charges nobody" do
    through_proxy
    ActiveRecord::Base.transaction { 2_000.times { |n| put("m-#{n}", to: queues[n % 4]) } }
    sweep_until_silence

    expect(marked.size).to be_between(1, 1_999)
    expect(charged).to be_empty
    expect(leased).to be_empty
  end
end
