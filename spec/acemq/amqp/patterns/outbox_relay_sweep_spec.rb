# frozen_string_literal: true

# Explicit sweeps: no thread, no waiting.
RSpec.describe AceMQ::AMQP::Patterns::OutboxRelay, "#sweep" do
  include AceMQ::SpecSupport::Records

  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:plain) { AceMQ::SpecSupport::ScriptedTransport.new }
  let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }

  def relay(transport = pipeline, store = self.store, **options)
    (@made ||= {})[[transport, store, options]] ||= described_class.new(transport, store, **options)
  end

  def sweep_raising(error = AceMQ::AMQP::PublishError, transport: pipeline, **options)
    expect { relay(transport, **options).sweep }.to raise_error(error)
  end

  it "answers 0 for an empty outbox" do
    expect(relay.sweep).to eq 0
    expect(pipeline.submitted).to be_empty
  end

  it "publishes one batch in order, marks it and answers how many" do
    add_records(store, "1" => "a", "2" => "b", "3" => "a")

    expect(relay(batch: 2).sweep).to eq 2
    expect(store.published).to eq %w[1 2]
    expect(relay(batch: 2).sweep).to eq 1
    expect(pipeline.submitted).to eq [%w[1 2], %w[3]]
    expect(store.leased).to be_empty
  end

  it "is an order: dials at once and claims whatever is backing off" do
    relay(ordering: :none, batch: 7).sweep

    expect(pipeline.dials).to eq 1
    expect(store.claims).to eq [{ limit: 7, ordering: :none, ignore_backoff: true }]
  end

  it "hands the transport the record as it is, and the relay's limits" do
    store.add(record("1", to: "a", exchange: "shop"))
    expect(pipeline).to receive(:submit).with(
      [{ exchange: "shop", routing_key: "a", body: "{}", content_type: "application/json", message_id: "1",
         headers: { "x-acemq-id" => "1" }, persistent: true, mandatory: true }],
      in_flight: 10, in_flight_bytes: 1000, confirm_timeout: 5, send_by: be_between(26, 27)
    ).and_call_original

    relay(in_flight: 10, in_flight_bytes: 1000, confirm_timeout: 5).sweep
  end

  describe "mandatory:" do
    def mandatory_of(rule)
      add_records(store, "1" => "order.placed", "2" => "order.viewed")
      store.add(record("3", exchange: "metrics"))
      relay(plain, mandatory: rule).sweep
      plain.published.map(&:mandatory)
    end

    it("is true") { expect(mandatory_of(true)).to eq [true, true, true] }
    it("is false when told") { expect(mandatory_of(false)).to eq [false, false, false] }
    it("leaves out the exchanges of a list") { expect(mandatory_of(%i[metrics])).to eq [true, true, false] }

    it "asks a callable" do
      expect(mandatory_of(->(exchange, key) { exchange == "shop" && key == "order.placed" })).to eq [true, false, false]
    end

    it "makes the failure of a callable the record's own, over every transport" do
      [plain, pipeline].each do |transport|
        store = AceMQ::SpecSupport::FakeClaimingStore.new
        add_records(store, "1" => "a", "2" => "b")
        rule = ->(_, key) { key == "a" ? raise("no rule") : true }

        expect { relay(transport, store, mandatory: rule).sweep }.to raise_error("no rule")
        expect(store.attempts).to eq("1" => 1, "2" => 0)
        expect(store.published).to eq %w[2]
      end
    end
  end

  describe "what failed, over the pipeline" do
    before { add_records(store, "a1" => "a", "b1" => "b", "a2" => "a", "b2" => "b") }

    it "holds a destination by its head and publishes the rest, then raises" do
      pipeline.verdict("a1", returned("a"))
      pipeline.verdict("a2", returned("a"))

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, /no queue is bound for a/)

      expect(store.published).to eq %w[b1 b2]
      expect(store.attempts).to eq("a1" => 1, "b1" => 0, "a2" => 0, "b2" => 0)
      expect(store.row("a1").error).to include "no queue is bound"
      expect(store.backing_off).to eq %w[a1]
      expect(store.leased).to be_empty
    end

    it "sends the held destination in order by the next sweep, once it can be" do
      pipeline.verdict("a1", returned("a"), nil)
      pipeline.verdict("a2", returned("a"), nil)
      sweep_raising

      expect(relay.sweep).to eq 2
      expect(pipeline.submitted.last).to eq %w[a1 a2]
    end

    it "never retires a destination's head, however often it fails" do
      pipeline.verdict("a1", nacked)
      pipeline.verdict("a2", nacked)
      sweep_raising
      5.times { sweep_raising }

      expect(store.settlements.map { |lists| lists[:held].map(&:first) }).to all(eq %w[a1])
      expect(store.settlements.flat_map { |lists| lists[:failed] }).to be_empty
    end

    it "retires what can never be sent at once, and goes on" do
      pipeline.verdict("a1", refused)

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, /300 bytes/)

      expect(store.published).to eq %w[b1 a2 b2]
      expect(store.retired).to eq %w[a1]
    end

    it "counts no attempt for a lost connection, marks what was confirmed and frees the rest" do
      %w[b1 a2 b2].each { |id| pipeline.verdict(id, lost) }

      sweep_raising(AceMQ::AMQP::TransportError)

      expect(store.published).to eq %w[a1]
      expect(store.attempts.values).to all(eq 0)
      expect(store.leased).to be_empty
      expect(store.backing_off).to be_empty
    end

    it "charges the head alone when the transport keeps its followers back" do
      pipeline.verdict("a1", returned("a"))
      pipeline.verdict("a2", unsent)

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, /no queue is bound/)

      expect(store.attempts).to eq("a1" => 1, "b1" => 0, "a2" => 0, "b2" => 0)
      expect(store.published).to eq %w[b1 b2]
      expect(relay.state.name).to eq :idle
    end

    it "raises when nothing was written and nothing else says why" do
      %w[a1 b1 a2 b2].each { |id| pipeline.verdict(id, unsent("no channel could be opened")) }

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishingPausedError, /no channel/)

      expect(store.attempts.values).to all(eq 0)
      expect(store.leased).to be_empty
      expect(relay.state).to have_attributes(name: :down, reason: /no channel/)
    end

    it "takes what the lease left no time for as nobody's failure" do
      %w[a2 b2].each { |id| pipeline.verdict(id, unsent("its lease would have run out")) }
      allow_any_instance_of(AceMQ::AMQP::Patterns::Relay::ClaimingStore::Rows).to receive(:ours?).and_return(true, false)

      expect(relay.sweep).to eq 2
      expect(store.leased).to be_empty
    end

    it "retires a row that its store cannot read, and sends the rest" do
      store.row("b1").record.body = nil
      store.row("b1").record.error = "the stored row cannot be read: not base64"

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, /cannot be read/)

      expect(store.retired).to eq %w[b1]
      expect(store.published).to eq %w[a1 a2 b2]
    end

    it "raises when the broker cannot be dialled, and claims nothing" do
      pipeline.down = lost

      sweep_raising(AceMQ::AMQP::TransportError)

      expect(store.claims).to be_empty
      expect(relay.state).to have_attributes(name: :down, reason: "the connection was reset")
    end

    it "raises at once while the broker has blocked publishing, and claims nothing" do
      pipeline.blocked_reason = "memory alarm"

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishingPausedError, /memory alarm/)
      expect(store.claims).to be_empty
      expect(relay.state).to have_attributes(name: :blocked)
    end

    it "does not wait for ever when the broker blocks in mid-batch" do
      pipeline.stalled = true
      allow(pipeline).to receive(:blocked_reason).and_return(nil, "memory alarm")

      sweep_raising(AceMQ::AMQP::PublishingPausedError, confirm_timeout: 0.1)

      expect(pipeline.tickets.last.cancelled).to be true
      expect(store.attempts.values).to all(eq 0)
      expect(store.leased).to be_empty
    end

    # Renewals once reset the clock of the one who waits.
    it "does not wait for ever then, however often its lease is renewed meanwhile" do
      store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 1.2)
      add_records(store, "1" => "a")
      pipeline.stalled = true
      allow(pipeline).to receive(:blocked_reason).and_return(nil, "memory alarm")

      took = elapsed do
        expect { relay(pipeline, store, confirm_timeout: 1.1).sweep }.to raise_error(AceMQ::AMQP::PublishingPausedError)
      end
      expect(took).to be < 5
    end

    it "frees what it has claimed when it is interrupted before it has begun to publish" do
      interruption = Class.new(Exception) # rubocop:disable Lint/InheritException -- as Timeout's own is
      add_records(store, "1" => "a")
      store.define_singleton_method(:claim) { |*args, **options| super(*args, **options).tap { Thread.current.raise(interruption) } }

      expect { relay.sweep }.to raise_error(interruption)
      expect(store.leased).to be_empty
      expect(pipeline.submitted).to be_empty
    end

    it "frees what it has claimed when whoever is told of the claim ends the thread" do
      require "active_support/notifications"
      add_records(store, "1" => "a")
      ActiveSupport::Notifications.subscribed(->(*) { Thread.exit }, "claim.acemq") { Thread.new { relay.sweep }.join }

      expect(store.leased).to be_empty
    end

    it "marks what was confirmed when it is interrupted, and frees the rest" do
      pipeline.stalled = true
      interruption = Class.new(Exception) # rubocop:disable Lint/InheritException -- as Timeout's own is
      sweeping = Thread.new { relay.sweep }
      sweeping.report_on_exception = false
      eventually { expect(pipeline.tickets.last&.waits.to_i).to be_positive }
      sweeping.raise(interruption)

      expect { sweeping.join }.to raise_error(interruption)
      expect(pipeline.tickets.last.cancelled).to be true
      expect(store.leased).to be_empty
      expect(store.settlements.size).to eq 1
    end
  end

  describe "in_flight: 1" do
    it "lets nothing overtake a failure, not even a nack" do
      add_records(store, "a1" => "a", "b1" => "b", "a2" => "a")
      pipeline.verdict("a1", nacked)

      sweep_raising(in_flight: 1)

      expect(pipeline.submitted).to eq [%w[a1], %w[b1]]
      expect(store.published).to eq %w[b1]
    end
  end

  describe "ordering: :strict" do
    before { add_records(store, "a1" => "a", "b1" => "b", "c1" => "c") }

    it "stops at the first failure and retires it at the ceiling" do
      pipeline.verdict("b1", returned("b"))
      3.times { sweep_raising(ordering: :strict) }

      expect(store.published).to eq %w[a1]
      expect(store.retired).to eq %w[b1]
      expect(pipeline.messages_submitted).to eq %w[a1 b1 b1 b1]

      expect(relay(ordering: :strict).sweep).to eq 1
      expect(store.published).to eq %w[a1 c1]
    end

    it "sends a window at a time when asked to" do
      expect(relay(ordering: :strict, in_flight: 2).sweep).to eq 3
      expect(pipeline.submitted).to eq [%w[a1 b1], %w[c1]]
    end
  end

  describe "ordering: :none" do
    it "has every record of an unreachable destination wait by itself, out of the way of the others" do
      add_records(store, "a1" => "a", "b1" => "b", "a2" => "a")
      pipeline.verdict("a1", returned("a"))
      pipeline.verdict("a2", unsent)
      sweep_raising(ordering: :none)

      expect(store.backing_off).to eq %w[a1 a2]
      expect(store.published).to eq %w[b1]
    end
  end

  describe "leases" do
    it "renews between slices of waiting and carries on" do
      store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 1.5)
      add_records(store, "1" => "a")
      pipeline.stalled = true
      sweeping = Thread.new { relay(pipeline, store, confirm_timeout: 1).sweep }
      eventually { expect(store.renewals).to be >= 1 }
      pipeline.tickets.last.answer!

      expect(sweeping.value).to eq 1
    end

    it "publishes nothing more over a plain transport once rows were lost to another relay" do
      store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 0.3)
      add_records(store, "1" => "a", "2" => "b", "3" => "c")
      slow = lambda do
        sleep 0.15
        store.row("3").token = "another relay's"
        nil
      end
      plain.script("a", slow)

      expect(relay(plain, store, confirm_timeout: 0.1).sweep).to eq 1
      expect(plain.ids).to eq %w[1]
      expect(store.row("3").token).to eq "another relay's"
    end

    it "publishes nothing past the lease when it cannot be renewed" do
      store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 0.2, failing: { renew: 99 })
      add_records(store, "1" => "a", "2" => "b")
      plain.script("a", lambda {
        sleep 0.2
        nil
      })

      expect(relay(plain, store, confirm_timeout: 0.1).sweep).to eq 1
      expect(plain.ids).to eq %w[1]
    end
  end

  describe "marks that the database refuses" do
    it "are told again before anything else is claimed" do
      add_records(store, "1" => "a", "2" => "b")
      store.fail_next(:settle, 2)

      sweep_raising(IOError)
      sweep_raising(IOError)
      expect(store.claims.size).to eq 1

      expect(relay.sweep).to eq 0
      expect(store.published).to eq %w[1 2]
      expect(pipeline.messages_submitted).to eq %w[1 2]
    end

    it "raises what the store raised while claiming" do
      store.fail_next(:claim)

      sweep_raising(IOError)
      expect(relay.state).to have_attributes(name: :down, reason: /database: .*refuses to claim/)
      expect(relay.sweep).to eq 0
      expect(relay.state.name).to eq :idle
    end
  end

  describe "over a plain transport" do
    before { add_records(store, "a1" => "a", "b1" => "b", "a2" => "a", "b2" => "b") }

    it "publishes one by one, with the family's keywords" do
      expect(relay(plain).sweep).to eq 4
      expect(plain.published.first.to_h).to eq(
        exchange: "shop", routing_key: "a", body: "{}", content_type: "application/json", message_id: "a1",
        headers: { "x-acemq-id" => "a1" }, persistent: true, mandatory: true
      )
    end

    it "sends only keywords that the object accepts" do
      taken = []
      fake = Object.new
      fake.define_singleton_method(:publish) { |exchange:, routing_key:, body:| taken << [exchange, routing_key, body] }

      expect(relay(fake).sweep).to eq 4
      expect(taken.first).to eq ["shop", "a", "{}"]
    end

    it "reads headers that a store keeps as text" do
      store.add(record("t1", to: "t", headers: '{"x-acemq-id":"t1","n":1}'))
      relay(plain).sweep

      expect(plain.published.last.headers).to eq("x-acemq-id" => "t1", "n" => 1)
    end

    it "charges what is the record's own, holds its destination and goes on" do
      plain.script("a", RuntimeError.new("boom"))

      expect { relay(plain).sweep }.to raise_error("boom")

      expect(store.published).to eq %w[b1 b2]
      expect(store.attempts).to eq("a1" => 1, "b1" => 0, "a2" => 0, "b2" => 0)
    end

    it "retires a record at the store's ceiling, and its destination flows on" do
      plain.script("a", RuntimeError.new("boom"), RuntimeError.new("boom"), RuntimeError.new("boom"), nil)
      3.times { sweep_raising(RuntimeError, transport: plain) }

      expect(store.retired).to eq %w[a1]
      expect(relay(plain).sweep).to eq 1
      expect(store.published).to eq %w[b1 a2 b2]
    end

    [Errno::ECONNRESET.new, Timeout::Error.new("slow"), AceMQ::AMQP::TransportError.new("down"),
     AceMQ::AMQP::PublishingPausedError.new("blocked")].each do |error|
      it "stops the batch and charges nobody for #{error.class}" do
        plain.script("b", error)

        sweep_raising(error.class, transport: plain)

        expect(store.published).to eq %w[a1]
        expect(store.attempts.values).to all(eq 0)
        expect(store.leased).to be_empty
      end
    end

    it "takes a blocked reason where there is one, and ignores one that raises" do
      answers = [-> { "disk alarm" }, -> { raise "not connected" }]
      plain.define_singleton_method(:blocked_reason) { answers.shift.call }

      sweep_raising(AceMQ::AMQP::PublishingPausedError, transport: plain)
      expect(relay(plain).sweep).to eq 4
    end

    it "goes through the transport that the connection has now" do
      connection = Struct.new(:transport).new(plain)
      relay = relay(connection, batch: 1)
      relay.sweep
      connection.transport = AceMQ::SpecSupport::ScriptedTransport.new
      relay.sweep

      expect(plain.ids).to eq %w[a1]
      expect(connection.transport.ids).to eq %w[b1]
    end
  end

  it "refuses to be called from within itself" do
    add_records(store, "1" => "a")
    plain.script("a", -> { relay(plain).sweep && nil })

    expect { relay(plain).sweep }.to raise_error(ThreadError, /within a sweep/)
  end

  it "runs one batch at a time" do
    add_records(store, (1..40).to_h { |n| [n.to_s, "k#{n}"] })
    inside = 0
    most = 0
    plain.define_singleton_method(:publish) do |**|
      most = [most, inside += 1].max
      Thread.pass
      inside -= 1
    end

    relay = self.relay(plain, batch: 10)
    counts = Array.new(4) { Thread.new { relay.sweep } }.map(&:value)

    expect(counts.sum).to eq 40
    expect(most).to eq 1
  end

  it "tells ActiveSupport::Notifications where it is loaded" do
    require "active_support"
    require "active_support/notifications"
    add_records(store, "a1" => "a", "b1" => "b")
    pipeline.verdict("a1", refused)
    events = []
    ActiveSupport::Notifications.subscribed(->(*event) { events << event.last }, "sweep.acemq") do
      sweep_raising
    end

    expect(events).to match [include(claimed: 2, published: 1, retired: 1, failures: [an_instance_of(AceMQ::AMQP::PublishError)])]
  end
end
