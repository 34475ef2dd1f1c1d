# frozen_string_literal: true

require "active_support"
require "active_support/notifications"

RSpec.describe AceMQ::AMQP::Notifications do
  include AceMQ::SpecSupport::Records

  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }
  let(:told) { [] }

  def relay(transport = pipeline, store: self.store, **options)
    AceMQ::AMQP::Patterns::OutboxRelay.new(transport, store, interval: 0.01, on_error: ->(_) {}, **options).tap { |one| relays << one }
  end

  def sweep(relay = self.relay)
    relay.sweep
  rescue AceMQ::AMQP::PublishError
    nil
  end

  # @return [Hash{String => Hash}] the last payload of each event that the block made
  def listening(*names, &block)
    names = names.map { |name| "#{name}.acemq" }
    ActiveSupport::Notifications.subscribed(->(name, *, payload) { told << [name, payload] }, /\A(#{names.join("|")})\z/, &block)
    told.to_h
  end

  it "tells of what a relay claims, publishes, marks and retires" do
    add_records(store, "a" => "one", "b" => "two", "c" => "three")
    pipeline.verdict("b", refused)
    pipeline.verdict("c", returned("three"))
    events = listening(:claim, :publish, :mark, :retire, :sweep) { sweep }

    expect(events["claim.acemq"]).to include(limit: 100, claimed: 3)
    expect(events["publish.acemq"]).to match(hash_including(records: [have_attributes(id: "a"), have_attributes(id: "b"),
                                                                      have_attributes(id: "c")],
                                                            confirmed: [have_attributes(id: "a")],
                                                            failures: [be_an(AceMQ::AMQP::PublishError)] * 2))
    expect(events["mark.acemq"]).to include(marked: 1, failed: 1, held: 1, unsent: 0, retired: 1)
    expect(events["retire.acemq"]).to include(id: "b", exchange: "shop", routing_key: "two", reason: /300 bytes/)
    expect(events["sweep.acemq"]).to include(claimed: 3, published: 1, retired: 1)
  end

  it "tells of each record of a store that is told of each" do
    memory = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
    add_records(memory, "a" => "one", "b" => "two")
    listening(:claim, :mark) { sweep(relay(AceMQ::SpecSupport::ScriptedTransport.new, store: memory)) }

    expect(told.map { |name, payload| [name, payload[:claimed] || payload[:marked]] })
      .to eq [["claim.acemq", 2], ["mark.acemq", 1], ["mark.acemq", 1]]
  end

  it "tells of a lease that was lost" do
    add_records(store, "a" => "one")
    settlement = AceMQ::SpecSupport::FakeClaimingStore::Settlement.new(1, [], 1)
    allow(store).to receive(:settle).and_return(settlement)

    expect(listening(:lease_lost) { sweep }["lease_lost.acemq"]).to include(rows: 1)
  end

  it "tells of a broker that blocks publishing, once" do
    add_records(store, "a" => "one")
    pipeline.blocked_reason = "memory alarm"
    relay = self.relay
    listening(:blocked) do
      relay.start
      eventually { expect(relay.state.name).to eq :blocked }
      relay.wake
      eventually { expect(told).not_to be_empty }
      relay.close
    end

    expect(told).to match [["blocked.acemq", { reason: /memory alarm/ }]]
  end

  it "tells of a connection that was made again, and not of the first" do
    transport = Class.new(AceMQ::SpecSupport::ScriptedTransport) do
      attr_accessor :open

      def open? = open
      def connect = self.open = true
    end.new
    relay = self.relay(transport)
    listening(:reconnect) do
      sweep(relay)
      sweep(relay)
      expect(told).to be_empty
      transport.open = false
      sweep(relay)
    end

    expect(told).to eq [["reconnect.acemq", {}]]
  end

  it "tells of a duplicate" do
    handler = AceMQ::AMQP::Patterns.idempotent(AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new) { AceMQ::AMQP::Ack.accept }
    message = AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: "m-1"))
    listening(:duplicate) { 2.times { handler.call(message) } }

    expect(told).to eq [["duplicate.acemq", { key: "m-1" }]]
  end

  it "tells of a message that was handled, and how" do
    transport = AceMQ::SpecSupport::ScriptedTransport.new
    connection = AceMQ::AMQP::Connection.new(transport: transport)
    desk = AceMQ::AMQP::Consuming::Desk.new(queue: "q", decoder: AceMQ::AMQP::Codec.decoder(connection.codec),
                                            handler: ->(_) { AceMQ::AMQP::Ack.accept },
                                            interceptors: connection.interceptors,
                                            judge: AceMQ::AMQP::Consuming::Judge.new(AceMQ::AMQP::RetryPolicy.none))
    delivery = AceMQ::AMQP::Delivery.new(body: "{}", content_type: "application/json", routing_key: "order.placed",
                                         message_id: "m-1", headers: { "x-acemq-id" => "m-1" })
    original = AceMQ::AMQP::Consuming::Original.new(delivery, AceMQ::AMQP::Consuming::Work.envelope(delivery))
    listening(:handle) { AceMQ::AMQP::Consuming::Work.new(desk, original) { nil }.settlement }

    expect(told).to match [["handle.acemq", { queue: "q", id: "m-1", type: "order.placed", attempt: 1, outcome: "acked" }]]
  end

  on_each_database(:sqlite) do
    it "tells of what is added, where to, and how large it is" do
      make_outbox
      events = listening(:add) do
        AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new.add(outbox_record("a", body: "12345"))
      end

      expect(events["add.acemq"]).to eq(id: "a", exchange: "shop", routing_key: "order.placed", bytes: 5, outbox: "acemq_outbox")
    end
  end

  it "lets no subscriber that raises get in the way of what it is told of" do
    add_records(store, "a" => "one")
    broken = ->(name, *) { raise IOError, "no logs today: #{name}" }
    ActiveSupport::Notifications.subscribed(broken, /\.acemq\z/) do
      expect { expect(relay.sweep).to eq 1 }.to output(/a subscriber of publish.acemq raised .*no logs today/).to_stderr
      expect { described_class.around(:add) { raise ArgumentError, "its own" } }.to raise_error(ArgumentError, "its own")
      expect { described_class.tell(:reconnect) }.to output(/reconnect.acemq/).to_stderr
    end

    expect(store.published).to eq %w[a]
  end

  it "makes nothing, and measures nothing, where nobody listens" do
    allow(ActiveSupport::Notifications).to receive(:notifier).and_return(ActiveSupport::Notifications::Fanout.new)
    expect(ActiveSupport::Notifications).not_to receive(:instrument)

    expect(described_class.around(:add, id: "a") { |payload| [payload, 1] }).to eq [nil, 1]
    described_class.tell(:retire, id: "a")
  end

  it "does without ActiveSupport" do
    hide_const("ActiveSupport")

    expect(described_class.around(:add) { 1 }).to eq 1
    expect(described_class.tell(:retire)).to be_nil
  end
end
