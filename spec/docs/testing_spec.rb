# frozen_string_literal: true

require "acemq/rails"
require "acemq/testing/rspec"
require "acemq/testing/minitest"

# The examples of the page, in an application that has such orders.
RSpec.describe "docs/testing.md" do
  text = File.read(File.expand_path("../../docs/testing.md", __dir__))
  examples = text.scan(/^```ruby\n(.*?)^```/m).flatten

  include AceMQ::Testing::Assertions

  def assert(truth, message) = truth || raise(message)

  before do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    make_outbox
    AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new)
    stub_const("Order", Class.new do
      def self.place!(params)
        ActiveRecord::Base.transaction do
          Order::OUTBOX.add(AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { order_id: params }, to: "order.placed",
                                                                                                        exchange: "shop-events"))
          raise ActiveRecord::Rollback if params.nil?
        end
      end
    end)
    stub_const("Order::OUTBOX", AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new)
  end

  after do
    AceMQ::Testing.outbox!
    AceMQ::SpecSupport::Database.disconnect
  end

  let(:params) { 7 }
  let(:broken) { nil }

  it "says what was written" do
    Order.place!(1)
    instance_eval(examples[1])
    instance_eval(examples[2])
  end

  it "says what was published" do
    instance_eval(examples[3])
  end

  it "says what goes wrong" do
    instance_eval(examples[4].sub("transport.heal", ""))
    transport = AceMQ::Rails.connection.transport
    relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, Order::OUTBOX)
    Order.place!(1)
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError) { |error| expect(error).to be_nacked }
    transport.heal
    expect(relay.sweep).to eq 1
  end

  it "lists every fault" do
    expect(text.scan(/^\| `:(\w+)` \|/).flatten.map(&:to_sym)).to match_array AceMQ::Testing::Faults::KINDS
  end

  it "has no example that is not run here" do
    expect(examples.size).to eq 5 # the first is how to begin
    expect(examples.first).to include "acemq/testing/rspec"
  end
end
