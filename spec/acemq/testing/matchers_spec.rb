# frozen_string_literal: true

require "acemq/testing/rspec"
require "acemq/testing/minitest"
require "acemq/rails"

RSpec.describe AceMQ::Testing::Matchers do
  let(:transport) { AceMQ::Testing::FakeTransport.new }

  before { AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport) }
  after { AceMQ::Testing.outbox! }

  def order(id = "1", **options)
    AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { order_id: 7, lines: [{ sku: "A", count: 2 }] },
                                 to: "order.placed", exchange: "shop-events", type: "order.placed.v2", id: id, **options)
  end

  on_each_database(:sqlite) do
    before do
      make_outbox
      make_orders
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }

    # What the block's expectation says when it fails.
    def failure
      yield
      raise "it did not fail"
    rescue RSpec::Expectations::ExpectationNotMetError => e
      e.message
    end

    describe "have_outboxed" do
      it "sees what a block puts into the outbox: where to, and with what" do
        expect { store.add(order) }.to have_outboxed("order.placed").to("shop-events").with(order_id: 7)
        expect { store.add(order("2")) }.to have_outboxed("order.placed.v2").with(lines: [{ sku: "A" }]).once
        expect { store.add(order("3")) }.to have_outboxed(/placed/).to(/shop/).with(order_id: be > 6)
        expect { store.add(order("4", headers: { "tenant" => "acme" })) }.to have_outboxed.with_headers("tenant" => "acme")
        expect { store.add(order("5")) }.not_to have_outboxed("order.placed").with(order_id: 8)
        expect { nil }.not_to have_outboxed
      end

      it "does not see what was there before, or is rolled back" do
        store.add(order)

        expect { nil }.not_to have_outboxed("order.placed")
        undone = lambda do
          ActiveRecord::Base.transaction do
            store.add(order("2"))
            raise ActiveRecord::Rollback
          end
        end
        expect(&undone).not_to have_outboxed("order.placed")
      end

      it "knows a store by its table, and not by the object" do
        other = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
        expect { store.add(order) }.to have_outboxed("order.placed").in(other.new)
        make_outbox(name: "events")
        expect { store.add(order("2")) }.not_to have_outboxed("order.placed").in(other.new(table: "events"))
      end

      it "does not count what was there already" do
        store.add(order)
        expect { store.add(order) }.not_to have_outboxed
      end

      it "counts" do
        expect { %w[1 2].each { |id| store.add(order(id)) } }.to have_outboxed("order.placed").twice
        expect { %w[3 4 4].each { |id| store.add(order(id)) } }.to have_outboxed.exactly(2).times
        expect { store.add(order("5")) }.to have_outboxed.at_least(1).and have_outboxed.at_most(1)
      end

      it "sees what is published at once" do
        AceMQ::Testing.inline!

        expect { store.add(order) }.to have_outboxed("order.placed").and have_published("order.placed")
      end

      it "looks into a store, and at stores that the library does not know" do
        store.add(order)
        expect(store).to have_outboxed("order.placed").with(order_id: 7)
        expect(store).not_to have_outboxed("order.paid")

        own = Class.new do
          def pending(_limit) = @pending ||= []
          def add(record) = pending(0) << record
        end.new
        own.add(order("a"))
        expect { own.add(order("b")) }.to have_outboxed("order.placed").in(own).once
        expect(own).to have_outboxed.twice
      end

      it "says what it found instead" do
        expect(failure { expect { store.add(order) }.to have_outboxed("order.paid").to("billing").with(a: 1) })
          .to start_with(%(expected to have outboxed "order.paid" to "billing" with ))
          .and include(", but found none among\n  ", %("order.placed" to "shop-events" with "{\\"order_id\\":7,))
        expect(failure { expect { nil }.to have_outboxed.twice })
          .to eq "expected to have outboxed a message, 2 times, but found none among no messages"
        expect(failure { expect { store.add(order("2")) }.not_to have_outboxed })
          .to start_with "expected not to have outboxed a message, but found 1"
      end
    end

    describe "have_published" do
      def publish
        AceMQ::Rails.publish({ order_id: 7 }, to: "order.placed", exchange: "shop-events")
      end

      it "sees what a block publishes, or what a transport has ever published" do
        publish
        expect { nil }.not_to have_published
        expect { publish }.to have_published("order.placed").to("shop-events").with(order_id: 7).once
        expect(transport).to have_published("order.placed").twice
        expect(AceMQ::Rails.connection).to have_published("order.placed").exactly(2).times
        other = AceMQ::Testing::FakeTransport.new
        expect { publish }.not_to have_published.on(other)
      end

      it "says that a transport cannot tell" do
        AceMQ::Rails.connection = AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:1")

        expect { expect { nil }.to have_published }.to raise_error(ArgumentError, /use AceMQ::Testing::FakeTransport/)
      end
    end

    describe AceMQ::Testing::Assertions do
      # As much of Minitest as the assertions need.
      let(:test) do
        Class.new do
          include AceMQ::Testing::Assertions

          def assert(truth, message) = truth || raise(message)
        end.new
      end

      it "asserts and refutes what is put into an outbox" do
        expect(test.assert_outboxed("order.placed", to: "shop-events", with: { order_id: 7 }) { store.add(order) })
          .to match [have_attributes(id: "1")]
        expect(test.refute_outboxed("order.paid") { store.add(order("2")) }).to eq []
        expect { test.refute_outboxed("order.placed") { store.add(order("3")) } }
          .to raise_error(/expected "order.placed" to be put into an outbox 0 times, not 1 times, among:\n  "order.placed" to/)
        expect { test.assert_outboxed(times: 2) { store.add(order("4")) } }.to raise_error(/2 times, not 1/)
      end

      it "asserts and refutes what is published" do
        test.assert_published("order.placed", times: 1) { AceMQ::Rails.publish({}, to: "order.placed") }
        test.assert_published("order.placed")
        test.refute_published("order.placed") { nil }
        expect { test.assert_published("order.paid") }.to raise_error(/at least once, not 0 times/)
      end

      it "is what Minitest takes" do
        require "minitest"
        include_assertions = Class.new(Minitest::Test) do
          include AceMQ::Testing::Assertions

          def test_nothing = assert_published("never")
        end
        Minitest::Runnable.runnables.delete(include_assertions)
        result = include_assertions.new("test_nothing").run

        expect(result.failures.map(&:message)).to match [/expected "never" to be published at least once/]
        expect(result.assertions).to eq 1
      end
    end
  end
end
