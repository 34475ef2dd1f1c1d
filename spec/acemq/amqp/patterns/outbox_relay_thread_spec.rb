# frozen_string_literal: true

require "json"

# The background thread: what it does by itself, what it survives, how it ends.
RSpec.describe AceMQ::AMQP::Patterns::OutboxRelay, "#start" do
  include AceMQ::SpecSupport::Records

  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }
  let(:told) { Thread::Queue.new }

  def relay(transport = pipeline, store: self.store, interval: 0.01, **options)
    options[:on_error] = ->(error) { told << error } unless options.key?(:on_error)
    described_class.new(transport, store, interval: interval, **options).tap { |relay| relays << relay }
  end

  def messages_told
    Array.new(told.size) { told.pop.message }
  end

  it "publishes what is there and what comes" do
    add_records(store, "1" => "a")
    relay = self.relay.start
    eventually { expect(store.published).to eq %w[1] }
    add_records(store, "2" => "a")

    eventually { expect(store.published).to eq %w[1 2] }
    expect(relay).to be_running
  end

  it "answers itself, and starts one thread however often it is called" do
    relay = self.relay

    expect(relay.start).to be relay
    expect(relay.start).to be relay
    expect(Thread.list.count { |thread| thread.name == "acemq-relay" }).to eq 1
  end

  it "honours backoff, unlike a sweep" do
    relay.start

    eventually { expect(store.claims.last).to include(ignore_backoff: false, ordering: :destination) }
  end

  it "follows a full batch by the next at once, and pauses only then" do
    add_records(store, (1..10).to_h { |n| [n.to_s, "a"] })
    relay(interval: 60, batch: 2).start

    eventually { expect(store.published.size).to eq 10 }
  end

  it "is woken before its interval is over" do
    relay = self.relay(interval: 60).start
    eventually { expect(store.claims).not_to be_empty }
    add_records(store, "1" => "a")
    relay.wake

    eventually { expect(store.published).to eq %w[1] }
  end

  it "says what it is doing, and since when" do
    relay = self.relay(interval: 60)
    expect(relay.state).to have_attributes(name: :idle, since: be_within(5).of(Time.now), reason: nil)

    pipeline.stalled = true
    add_records(store, "1" => "a")
    relay.start
    eventually { expect(relay.state.name).to eq :publishing }
    pipeline.tickets.last.answer!
    eventually { expect(relay.state.name).to eq :idle }
    relay.close
    expect(relay.state.name).to eq :closed
  end

  describe "without a broker" do
    before { pipeline.down = lost }

    it "starts, tells once, and goes on trying until it is there" do
      add_records(store, "1" => "a")
      relay = self.relay.start
      eventually { expect(pipeline.dials).to be >= 3 }
      expect(relay.state).to have_attributes(name: :down, reason: "the connection was reset")
      expect(messages_told).to eq ["the connection was reset"]
      expect(store.claims).to be_empty

      pipeline.down = nil
      eventually { expect(store.published).to eq %w[1] }
      expect(store.attempts.values).to eq [0]
    end

    it "tells again of the next outage" do
      relay.start
      eventually { expect(told.size).to eq 1 }
      pipeline.down = nil
      eventually { expect(store.claims.size).to be >= 2 }
      pipeline.down = lost

      eventually { expect(told.size).to eq 2 }
    end

    it "is not made to dial more often by being woken" do
      relay = self.relay.start
      eventually { expect(pipeline.dials).to be >= 4 }
      before = pipeline.dials
      30.times do
        relay.wake
        sleep 0.01 # wake-ups spread over a part of the pause
      end

      expect(pipeline.dials - before).to be <= 2
    end

    it "dials under 40 times in 30 s" do
      redial = AceMQ::AMQP::Patterns::Relay::Redial.new(random: Random.new(1))
      pauses = Array.new(100) { redial.pause }

      expect(pauses.first).to be_within(0.011).of(0.1)
      expect(pauses.max).to be <= 1.1
      expect(pauses.each_with_index.find { |_, n| pauses.first(n).sum >= 30 }.last).to be < 40
    end
  end

  it "waits visibly while the broker blocks publishing, and tells once" do
    add_records(store, "1" => "a")
    pipeline.blocked_reason = "memory alarm"
    relay = self.relay.start
    eventually { expect(relay.state).to have_attributes(name: :blocked, reason: /memory alarm/) }
    expect(store.claims).to be_empty

    pipeline.blocked_reason = nil
    eventually { expect(store.published).to eq %w[1] }
    expect(messages_told).to match [/memory alarm/]
  end

  it "sits out an alarm that comes in mid-batch, renewing its lease, and tells once" do
    store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 0.6)
    add_records(store, "1" => "a")
    pipeline.stalled = true
    relay = self.relay(store: store, confirm_timeout: 0.1).start
    eventually { expect(pipeline.tickets).not_to be_empty }
    pipeline.blocked_reason = "memory alarm"
    eventually { expect(relay.state.name).to eq :blocked }
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishingPausedError)
    eventually { expect(store.renewals).to be >= 2 }
    expect(pipeline.tickets.last.cancelled).to be_nil
    expect(messages_told).to match [/memory alarm/]
    pipeline.blocked_reason = nil
    pipeline.tickets.last.answer!

    eventually { expect(store.published).to eq %w[1] }
    expect(pipeline.messages_submitted).to eq %w[1]
  end

  it "tells the wire of every renewal, and of a lease that somebody else has: then nothing more may be written" do
    store = AceMQ::SpecSupport::FakeClaimingStore.new(lease: 0.6)
    add_records(store, "1" => "a")
    pipeline.stalled = true
    relay(store: store, confirm_timeout: 0.5).start
    eventually { expect(pipeline.tickets.last&.deadlines).to include(be_within(0.2).of(0.5)) }
    store.row("1").lease_to("another relay", 60.0)

    eventually { expect(pipeline.tickets.last.deadlines.last).to eq 0 }
    expect(store.row("1").token).to eq "another relay"
    pipeline.tickets.last.answer!
  end

  describe "on_error" do
    it "gets the destination by keywords if it declares any, else the error alone" do
      add_records(store, "1" => "a")
      pipeline.verdict("1", returned("a"))
      seen = Thread::Queue.new
      callbacks = [
        ->(error, exchange:, routing_key:) { seen << [error.class, exchange, routing_key] },
        ->(error, exchange:) { seen << [error.class, exchange] },
        ->(error, **rest) { seen << [error.class, rest] },
        ->(error) { seen << [error.class] },
        Class.new { define_method(:call) { |error, routing_key: nil| seen << [error.class, routing_key] } }.new
      ]
      told = callbacks.map do |callback|
        relay = self.relay(on_error: callback).start
        seen.pop.tap do
          relay.close
          store.row("1").until = nil
        end
      end

      error = AceMQ::AMQP::PublishError
      expect(told).to eq [[error, "shop", "a"], [error, "shop"],
                          [error, { exchange: "shop", routing_key: "a" }], [error], [error, "a"]]
    end

    it "gets empty strings when the store raised before a record was in hand" do
      store.fail_next(:claim)
      seen = Thread::Queue.new
      relay(on_error: ->(error, exchange:, routing_key:) { seen << [error.class, exchange, routing_key] }).start

      expect(seen.pop).to eq [IOError, "", ""]
    end

    it "is told once of a destination that stays unreachable, and again after it worked in between" do
      add_records(store, "1" => "a")
      pipeline.verdict("1", returned("a"), returned("a"), returned("a"), nil)
      relay.start
      4.times { |n| eventually { expect(pipeline.messages_submitted.size).to be > n } && (store.now += 100) }
      eventually { expect(store.published).to eq %w[1] }
      expect(told.size).to eq 1

      add_records(store, "2" => "a")
      pipeline.verdict("2", returned("a"))
      eventually { expect(told.size).to eq 2 }
    end

    it "is told once of a retired record, with what to do" do
      add_records(store, "1" => "a")
      pipeline.verdict("1", refused)
      relay.start
      error = told.pop

      expect(error).to be_an(AceMQ::AMQP::PublishError).and have_attributes(exchange: "shop", routing_key: "a")
      expect(error.message).to include("1", "retired", "retry!", "300 bytes")
      expect(error.cause.message).to include "300 bytes"
      expect(told).to be_empty
    end

    it "may raise anything: that is logged, and the relay goes on" do
      add_records(store, "1" => "a", "2" => "b")
      pipeline.verdict("1", refused)

      expect do
        relay = self.relay(on_error: ->(_) { raise NotImplementedError, "on_error is broken" }).start
        eventually { expect(store.published).to eq %w[2] }
        relay.close
      end.to output(/on_error raised NotImplementedError: on_error is broken.*300 bytes/).to_stderr
    end

    it "is the log where there is none" do
      pipeline.down = lost

      expect { relay(on_error: nil).start.tap { eventually { expect(pipeline.dials).to be > 1 } }.close }
        .to output(/outbox relay: the connection was reset/).to_stderr
    end
  end

  describe "what the thread survives" do
    it "a store that raises, even what is no StandardError" do
      add_records(store, "1" => "a")
      broken = [IOError, NotImplementedError, SystemStackError, NoMemoryError]
      store.define_singleton_method(:claim) do |*args, **options|
        broken.empty? ? super(*args, **options) : raise(broken.shift, "broken")
      end
      relay = self.relay.start

      eventually { expect(store.published).to eq %w[1] }
      expect(relay).to be_running
      expect(Array.new(4) { told.pop.class }).to eq [IOError, NotImplementedError, SystemStackError, NoMemoryError]
    end

    it "a transport that raises what is no StandardError, without leaving rows leased" do
      add_records(store, "1" => "a")
      broken = [NotImplementedError]
      pipeline.define_singleton_method(:submit) do |*args, **options|
        broken.empty? ? super(*args, **options) : raise(broken.shift, "broken")
      end
      relay.start

      eventually { expect(store.published).to eq %w[1] }
    end

    it "is not hidden when it was killed, and start mends it" do
      relay = self.relay.start
      Thread.list.find { |thread| thread.name == "acemq-relay" }.kill.join
      expect(relay).not_to be_running

      add_records(store, "1" => "a")
      relay.start
      eventually { expect(store.published).to eq %w[1] }
    end
  end

  describe "#close" do
    it "ends a pause at once and answers nil, twice" do
      relay = self.relay(interval: 60).start
      eventually { expect(store.claims).not_to be_empty }

      expect(relay.close(timeout: 2)).to be_nil
      expect(relay.close(timeout: 2)).to be_nil
      expect(relay).not_to be_running
    end

    it "answers nil for a relay that was never started" do
      expect(relay.close).to be_nil
    end

    it "waits for the batch on its way, and claims no more" do
      add_records(store, "1" => "a", "2" => "a")
      pipeline.stalled = true
      relay = self.relay(batch: 1).start
      eventually { expect(pipeline.tickets).not_to be_empty }
      closing = Thread.new { relay.close(timeout: 10) }
      eventually { expect(closing.status).to eq "sleep" }
      pipeline.tickets.last.answer!
      closing.join

      expect(store.published).to eq %w[1]
      expect(store.claims.size).to eq 1
      expect(store.leased).to be_empty
    end

    it "cancels the batch when time is up, marks what was confirmed and frees the rest" do
      add_records(store, "1" => "a")
      pipeline.stalled = true
      relay = self.relay.start
      eventually { expect(pipeline.tickets).not_to be_empty }
      began = AceMQ::AMQP::Clock.now
      relay.close(timeout: 0.5)

      expect(AceMQ::AMQP::Clock.now - began).to be < 2
      expect(pipeline.tickets.last.cancelled).to be true
      expect(store.leased).to be_empty
      expect(store.attempts.values).to eq [0]
      expect(relay).not_to be_running
    end

    it "stops between two records of a plain transport and frees the rest" do
      add_records(store, "1" => "a", "2" => "b", "3" => "c")
      plain = AceMQ::SpecSupport::ScriptedTransport.new
      entered = Thread::Queue.new
      go = Thread::Queue.new
      plain.script("a", -> { (entered << 1) && go.pop && nil })
      relay = self.relay(plain).start
      entered.pop
      closing = Thread.new { relay.close(timeout: 10) }
      eventually { expect(closing.status).to eq "sleep" }
      go << 1
      closing.join

      expect(store.published).to eq %w[1]
      expect(store.leased).to be_empty
    end

    it "interrupts a dial" do
      dialling = Thread::Queue.new
      allow(pipeline).to receive(:connect) { (dialling << 1) && sleep }
      relay = self.relay.start
      dialling.pop
      relay.close(timeout: 30)

      expect(relay).not_to be_running
      expect(told).to be_empty
    end

    it "marks at last what the database refused until then" do
      add_records(store, "1" => "a")
      store.fail_next(:settle)
      relay = self.relay(interval: 60).start
      eventually { expect(told.size).to eq 1 }
      relay.close

      expect(store.published).to eq %w[1]
    end

    it "may be called by on_error" do
      pipeline.down = lost
      relay = self.relay(on_error: ->(_) { relays.last.close }).start

      eventually { expect(relay).not_to be_running }
    end

    it "lets the relay start again, and sweep" do
      relay = self.relay.start
      relay.close
      add_records(store, "1" => "a")
      expect(relay.sweep).to eq 1
      relay.start
      add_records(store, "2" => "a")

      eventually { expect(store.published).to eq %w[1 2] }
      expect(relay).to be_running
    end
  end

  describe "sweep beside the thread" do
    it "excludes it, and comes before its next batch" do
      plain = AceMQ::SpecSupport::ScriptedTransport.new
      inside = 0
      most = 0
      plain.define_singleton_method(:publish) do |message_id:, **|
        most = [most, inside += 1].max
        sleep 0.001
        inside -= 1
        message_id
      end
      add_records(store, (1..400).to_h { |n| [n.to_s, "a"] })
      relay = self.relay(plain, batch: 10).start
      eventually { expect(store.published).not_to be_empty }

      expect(relay.sweep).to eq 10
      eventually { expect(store.published.size).to eq 400 }
      expect(most).to eq 1
    end
  end

  it "registers with its connection, which closes it first" do
    connection = AceMQ::AMQP::Connection.new(transport: pipeline)
    relay = self.relay(connection).start
    eventually { expect(store.claims).not_to be_empty }
    connection.close(timeout: 5)

    expect(relay).not_to be_running
  end

  it "is wrapped in Rails' executor where there is one" do
    wraps = Thread::Queue.new
    executor = Object.new
    executor.define_singleton_method(:wrap) { |&block| (wraps << Thread.current.name) && block.call }
    stub_const("Rails", Module.new)
    Rails.define_singleton_method(:application) { Struct.new(:executor).new(executor) }
    relay.start

    expect(Array.new(2) { wraps.pop }).to all(eq "acemq-relay")
  end

  describe "after a fork" do
    def in_child
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        writer.write(JSON.generate(yield))
        writer.close
        exit!(0)
      end
      writer.close
      answer = reader.read
      Process.wait(pid)
      JSON.parse(answer)
    end

    it "is not inherited; the child's close touches nothing, its start makes a thread of its own" do
      relay = self.relay.start
      eventually { expect(store.claims).not_to be_empty }

      child = in_child do
        inherited = relay.running?
        relay.close
        add_records(store, "1" => "a")
        relay.start
        eventually(5) { expect(store.published).to eq %w[1] }
        relay.close
        [inherited, store.published, relay.running?]
      end

      expect(child).to eq [false, %w[1], false]
      expect(relay).to be_running
    end

    it "leaves the parent's batch alone, whose turn it is for ever in the child" do
      add_records(store, "1" => "a")
      pipeline.stalled = true
      relay = self.relay.start
      eventually { expect(pipeline.tickets.last&.waits.to_i).to be_positive }

      child = in_child do
        took = elapsed { relay.close(timeout: 5) }
        pipeline.stalled = false
        add_records(store, "2" => "b")
        [took < 1, pipeline.tickets.first.cancelled, relay.sweep]
      end

      expect(child).to eq [true, nil, 1]
    end
  end
end
