# frozen_string_literal: true

require_relative "application"

# An application's own ActiveRecord outbox, as it was written for the family's gems, runs unchanged on this one.
RSpec.describe "A hand-written outbox" do
  on_each_database(:sqlite, :postgres) do
    before(:context) do
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
    end

    after(:context) { HandwrittenApplication.drop }

    before { AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport) }

    after do
      AceMQ::Rails.connection = nil
      [OutboxMessage, Order].each(&:delete_all)
    end

    let(:transport) { FakeTransport.new }
    let(:outbox) { ActiveRecordOutboxStore.new }
    let(:relay) { AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, outbox) }

    def place(customer = "Ada")
      Order.place!({ customer: customer }, outbox: outbox)
    end

    def add(id, to:)
      outbox.add(AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { "id" => id }, to: to, id: id))
    end

    def row(id)
      OutboxMessage.find(id)
    end

    # What such an application's own specs ask.
    describe "the application's own examples" do
      it "writes the event in the same transaction as the order" do
        expect { place }.to change(outbox, :pending_count).by(1)
      end

      it "writes nothing when the transaction rolls back" do
        allow(Inventory).to receive(:reserve!).and_raise(Inventory::Unavailable)

        expect { place rescue nil }.not_to change(outbox, :pending_count) # rubocop:disable Style/RescueModifier
      end

      it "publishes what the outbox holds" do
        place
        AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, outbox).sweep

        expect(AceMQ::Rails.connection.transport.published.map(&:routing_key)).to eq(["order.placed"])
        expect(outbox.pending_count).to eq(0)
      end
    end

    it "puts the same message on the wire as a direct publish" do
      order = place
      message = row(OutboxMessage.pick(:id))
      AceMQ::Rails.publish(order.as_json, to: "order.placed", exchange: "shop-events", type: "order.placed.v2",
                                          id: message.id, first_seen: first_seen(message))
      relay.sweep

      direct, relayed = transport.published
      expect(relayed).to eq direct
    end

    def first_seen(message)
      AceMQ::AMQP::Envelope.from_headers(JSON.parse(message.headers)).first_seen
    end

    it "brings every kind of body through" do
      bodies = { "text" => "plain", "json" => "{\"a\":\"\u00FC\"}", "binary" => (0..255).map(&:chr).join.b, "empty" => "" }
      bodies.each do |id, body|
        record = AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, body, to: "a", id: id,
                                                                             codec: AceMQ::AMQP::BytesCodec.new)
        outbox.add(record)
      end
      relay.sweep

      expect(transport.published.to_h { |message| [message.message_id, message.body.b] })
        .to eq(bodies.transform_values(&:b))
    end

    it "counts a failing record and stops the batch there" do
      transport.fail_on("b", AceMQ::AMQP::PublishError.new("no queue is bound", unroutable: true))
      add("1", to: "a")
      add("2", to: "b")
      add("3", to: "a")

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)

      expect(transport.published.map(&:message_id)).to eq %w[1]
      expect(row("1").published_at).not_to be_nil
      expect(row("2")).to have_attributes(attempts: 1, last_error: "no queue is bound", locked_by: nil)
      expect(row("3")).to have_attributes(attempts: 0, last_error: nil, published_at: nil)
    end

    it "goes on in order once the record can be sent, long before the lease of the others ends" do
      transport.fail_on("b", AceMQ::AMQP::PublishError.new("no queue is bound"))
      { "1" => "a", "2" => "b", "3" => "a" }.each { |id, to| add(id, to: to) }
      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)
      transport.recover("b")

      expect(relay.sweep).to eq 2
      expect(transport.published.map(&:message_id)).to eq %w[1 2 3]
      expect(outbox.pending_count).to eq 0
    end

    it "leaves a record alone at the application's ceiling, and publishes what is behind it" do
      transport.fail_on("b", AceMQ::AMQP::PublishError.new("never"))
      { "1" => "b", "2" => "a" }.each { |id, to| add(id, to: to) }
      10.times { expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError) }

      expect(relay.sweep).to eq 1
      expect(row("1")).to have_attributes(attempts: 10, published_at: nil)
      expect(transport.published.map(&:message_id)).to eq %w[2]
    end

    [Errno::ECONNREFUSED.new, AceMQ::AMQP::TransportError.new("no broker")].each do |outage|
      it "counts nothing during an outage (#{outage.class})" do
        add("1", to: "a")
        transport.fail_on("a", outage)
        12.times { expect { relay.sweep }.to raise_error(outage.class) }
        transport.recover("a")

        expect(relay.sweep).to eq 1
        expect(row("1").attempts).to eq 0
      end
    end

    it "adds the same record once, also when its transaction is tried again" do
      record = AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, {}, to: "a", id: "1")
      2.times { outbox.add(record) }

      expect(relay.sweep).to eq 1
    end

    it "purges what was published long ago" do
      add("1", to: "a")
      add("2", to: "a")
      relay.sweep
      OutboxMessage.where(id: "1").update_all(published_at: 8.days.ago)

      expect(outbox.purge_published(7 * 24 * 3600)).to eq 1
      expect(OutboxMessage.pluck(:id)).to eq %w[2]
    end

    describe "the background relay" do
      let(:reports) { Thread::Queue.new }

      def started(**options)
        AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, outbox, interval: 0.02, batch: 100, **options).start
      end

      it "reports the destination to a callback with keywords, and goes on" do
        transport.fail_on("b", AceMQ::AMQP::PublishError.new("no queue is bound"))
        add("1", to: "b")
        relay = started(
          on_error: lambda { |error, exchange:, routing_key:|
            reports << [error.message, { outbox: exchange, routing_key: routing_key }]
          }
        )
        expect(reports.pop).to eq ["no queue is bound", { outbox: "", routing_key: "b" }]
        transport.recover("b")

        eventually { expect(OutboxMessage.where(published_at: nil).count).to eq 0 }
        expect(relay).to be_running
      ensure
        relay&.close
      end

      it "holds no database connection while it waits for the broker" do
        waiting = Thread::Queue.new
        transport.define_singleton_method(:publish) { |**message| waiting.pop && super(**message.except(:mandatory, :reply_to)) }
        place
        relay = started
        eventually { expect(waiting.num_waiting).to eq 1 }

        expect(ActiveRecord::Base.connection_pool.connections.map(&:owner))
          .not_to include(Thread.list.find { |one| one.name == "acemq-relay" })
        waiting << true
        eventually { expect(outbox.pending_count).to eq 0 }
      ensure
        waiting&.close
        relay&.close
      end

      it "holds no database connection while it sleeps" do
        relay = started
        place
        eventually { expect(outbox.pending_count).to eq 0 }
        thread = Thread.list.find { |one| one.name == "acemq-relay" }

        eventually { expect(ActiveRecord::Base.connection_pool.connections.map(&:owner)).not_to include(thread) }
      ensure
        relay&.close
      end
    end
  end
end
