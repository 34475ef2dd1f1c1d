# frozen_string_literal: true

require "acemq/testing"
require "acemq/rails"

RSpec.describe "AceMQ::Testing.inline!" do
  let(:transport) { AceMQ::Testing::FakeTransport.new }

  before { AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport) }
  after { AceMQ::Testing.outbox! }

  def record_of(id)
    AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { id: id }, to: "order.placed", exchange: "shop", id: id)
  end

  def published
    transport.published.map(&:message_id)
  end

  on_each_database(:sqlite, :postgres) do
    before do
      make_outbox
      make_orders
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }

    def transaction(**options, &block)
      ActiveRecord::Base.transaction(**options, &block)
    end

    it "publishes what is added, at once where there is no transaction" do
      AceMQ::Testing.inline!
      store.add(record_of("a"))

      expect(published).to eq %w[a]
      expect(store.pending_count).to eq 0
    end

    it "publishes when the transaction has committed, and not before" do
      AceMQ::Testing.inline!
      transaction do
        store.add(record_of("a"))
        transaction(requires_new: true) { store.add(record_of("b")) }
        expect(published).to be_empty
      end

      expect(published).to match_array %w[a b]
    end

    it "publishes nothing of a transaction that is rolled back, in part or as a whole" do
      AceMQ::Testing.inline!
      transaction do
        store.add(record_of("kept"))
        transaction(requires_new: true) do
          store.add(record_of("undone"))
          raise ActiveRecord::Rollback
        end
      end
      transaction do
        store.add(record_of("gone"))
        raise ActiveRecord::Rollback
      end

      expect(published).to eq %w[kept]
    end

    # As Rails wraps each test into one that is rolled back.
    it "takes the transaction of a test for none of the application's" do
      ActiveRecord::Base.connection.begin_transaction(joinable: false)
      AceMQ::Testing.inline!
      store.add(record_of("a"))
      expect(published).to eq %w[a]
      transaction { store.add(record_of("b")) }

      expect(published).to eq %w[a b]
    ensure
      ActiveRecord::Base.connection.rollback_transaction
    end

    it "leaves in the outbox what the transport does not take, as a relay does, and says why" do
      AceMQ::Testing.inline!
      transport.fault(:nack, times: 1)
      transaction { store.add(record_of("a")) }

      expect(store.held).to eq(%w[shop order.placed] => 1)
      expect(AceMQ::Testing.errors).to match [have_attributes(nacked?: true)]
    end

    it "lasts for a block, or until it is turned off" do
      answer = AceMQ::Testing.inline! do
        store.add(record_of("a"))
        AceMQ::Testing.inline?
      end
      expect([answer, AceMQ::Testing.inline?]).to eq [true, false]
      store.add(record_of("b"))

      expect(published).to eq %w[a]
    end
  end

  it "is on again after a block within it" do
    AceMQ::Testing.inline!
    AceMQ::Testing.inline! { nil }

    expect(AceMQ::Testing).to be_inline
  end

  it "works on the outbox in memory" do
    AceMQ::Testing.inline!
    store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
    store.add(record_of("a"))

    expect([published, store.size]).to eq [%w[a], 0]
  end

  it "takes another connection" do
    other = AceMQ::Testing::FakeTransport.new
    AceMQ::Testing.inline!(other) { AceMQ::AMQP::Patterns::InMemoryOutboxStore.new.add(record_of("a")) }

    expect([published, other.published.size]).to eq [[], 1]
  end
end
