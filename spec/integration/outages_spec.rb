# frozen_string_literal: true

require "timeout"

# The broker, the way to it, or the database goes away and comes back.
RSpec.describe "An outage", :broker do
  outage = ENV["ACEMQ_LONG"] == "1" ? 30 : 4 # seconds

  on_each_database do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:proxy) { new_proxy }
    let(:through_proxy) { AceMQ::AMQP::Connection.lazy(proxy.url(broker.url), connection_timeout: 5) }

    after { through_proxy.close(timeout: 2) }

    def put_all(count, prefix = "m")
      ActiveRecord::Base.transaction { count.times { |n| put("#{prefix}-#{n}", to: queue) } }
    end

    # Case 3.
    it "of #{outage} s costs no attempt, few dials and one report, and everything is delivered after it" do
      put_all(50)
      proxy.turn_away
      relay = new_relay(through_proxy, interval: 0.1).start
      eventually { expect(relay.state.name).to eq :down }
      sleep outage # what is asked is what happens during this time
      dials = proxy.accepted
      expect(reported.size).to eq 1
      expect(leased).to be_empty
      proxy.resume

      eventually(2) { expect(marked).not_to be_empty }
      eventually(30) { expect(marked.size).to eq 50 }
      expect(charged).to be_empty
      expect(dials).to be < [outage * 40 / 30, 12].max
      expect(ids_in(amqp, queue).uniq.size).to eq 50
      eventually { expect(relay.state.name).to eq :idle }
    end

    # Case 15.
    it "that cuts the connection again and again loses nothing, and marks nothing that is in no queue" do
      cuts = ENV["ACEMQ_LONG"] == "1" ? 10 : 4
      put_all(500 * cuts)
      relay = new_relay(through_proxy, batch: 100, interval: 0.05).start
      cuts.times do
        sleep 0.3 # the pace at which the connection is cut
        proxy.reset
      end
      eventually(60) { expect(outbox.pending_count).to eq 0 }
      relay.close
      received = ids_in(amqp, queue)

      expect(received.uniq).to match_array(marked)
      expect(marked.size).to eq 500 * cuts
      expect(received.size - received.uniq.size).to be <= cuts * 100
      expect(charged).to be_empty
    end

    it "at the start does not keep a relay from starting" do
      proxy.turn_away
      put("early", to: queue)
      relay = new_relay(through_proxy, interval: 0.1).start
      expect(relay).to be_running
      expect { relay.sweep }.to raise_error(AceMQ::AMQP::TransportError)
      proxy.resume

      eventually(10) { expect(marked).to eq %w[early] }
    end

    it "in the middle of a sweep releases what was not sent and marks what was confirmed" do
      relay = new_relay(through_proxy.connect, batch: 200, confirm_timeout: 5)
      put("first", to: queue)
      relay.sweep # the link has proved itself: from now on the whole batch goes out
      put_all(200)
      written = proxy.upstream
      sweeping = nil
      holding_answers(proxy) do
        sweeping = Thread.new { relay.sweep }
        sweeping.report_on_exception = false
        eventually { expect(proxy.upstream - written).to be > 10_000 }
        proxy.reset
      end

      expect { sweeping.value }.to raise_error(AceMQ::AMQP::TransportError)
      expect(leased).to be_empty
      expect(charged).to be_empty
      already = marked.size
      expect(already + relay.sweep).to eq 201
    end

    it "ends a sweep that has a Timeout around it in time, and frees its rows" do
      put_all(10)
      relay = new_relay(through_proxy.connect)
      holding_answers(proxy) do
        took = elapsed { expect { Timeout.timeout(1) { relay.sweep } }.to raise_error(Timeout::Error) }
        expect(took).to be < 4
      end

      expect(leased).to be_empty
      expect(charged).to be_empty
      eventually(10) { expect(sweep_quietly(relay) + marked.size).to be >= 10 }
    end

    it "does not keep close waiting beyond its timeout" do
      put_all(10)
      relay = new_relay(through_proxy.connect, interval: 0.1)
      holding_answers(proxy) do
        relay.start
        eventually { expect(leased).not_to be_empty }
        expect(elapsed { relay.close(timeout: 1) }).to be < 3
      end

      expect(relay).not_to be_running
      expect(leased).to be_empty
    end

    it "ends with the connection, which closes its relays first" do
      put_all(10)
      relay = new_relay(through_proxy, interval: 0.1).start
      eventually { expect(outbox.pending_count).to eq 0 }
      through_proxy.close(timeout: 5)

      expect(relay).not_to be_running
      expect(reported).to be_empty
    end
  end

  # Case 22.
  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }

    def kill_sessions
      connection do |db|
        if database == :postgres
          db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity " \
                     "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        else
          own = db.select_value("SELECT CONNECTION_ID()").to_i
          ids = db.select_values("SELECT id FROM information_schema.processlist WHERE db = DATABASE()").map(&:to_i)
          (ids - [own]).each { |id| db.execute("KILL #{id}") }
        end
      end
    end

    # A session that ends within a claim leaves rows leased whose lease has to run out.
    it "of the database's sessions is mended by the relay itself, idle or in mid-batch" do
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 5)
      relay = new_relay(amqp, store, interval: 0.1, confirm_timeout: 3).start
      thread = Thread.list.find { |one| one.name == "acemq-relay" }
      put("before", to: queue)
      eventually { expect(marked).to eq %w[before] }

      3.times do |n|
        kill_sessions
        put("after-#{n}", to: queue)
        eventually(10) { expect(marked).to include "after-#{n}" }
      end
      ActiveRecord::Base.transaction { 500.times { |n| put("many-#{n}", to: queue) } }
      5.times do
        kill_sessions
        sleep 0.05 # somewhere within a batch
      end

      eventually(30) { expect(outbox.pending_count).to eq 0 }
      expect(thread).to be_alive
      expect(relay).to be_running
      expect(ids_in(amqp, queue).uniq.size).to eq 504
    end
  end

  describe "that only a broker of our own can show" do
    before(:context) { AceMQ::SpecSupport::Database.connect(:sqlite) }
    after(:context) { AceMQ::SpecSupport::Database.disconnect }
    before { make_outbox }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }

    # Case 6 (a) and case 10: a memory alarm.
    it "a memory alarm: visible, told once, nothing charged, no message more than twice" do
      ActiveRecord::Base.transaction { 20.times { |n| put("a-#{n}", to: queue) } }
      relay = new_relay(open_connection, interval: 0.1, confirm_timeout: 1)
      other = new_relay(open_connection, confirm_timeout: 1)
      elsewhere = new_queue(amqp)
      under_alarm do
        relay.start
        eventually(15) { expect(relay.state.name).to eq :blocked }
        put("other", to: elsewhere)
        expect(elapsed { expect { Timeout.timeout(1) { other.sweep } }.to raise_error(Timeout::Error) }).to be < 4
        sleep 3 # longer than any confirm may take
        expect(marked).to be_empty
        expect(charged).to be_empty
      end

      eventually(20) { expect(outbox.pending_count).to eq 0 }
      expect(ids_in(amqp, queue).tally.values.max).to be <= 2
      expect(charged).to be_empty
    end

    # Case 6 (b).
    it "a broker that stands still: unknown, uncharged, and sent again when it is back" do
      relay = new_relay(open_connection, interval: 0.1, confirm_timeout: 1)
      put("first", to: queue)
      relay.sweep
      ActiveRecord::Base.transaction { 19.times { |n| put("p-#{n}", to: queue) } }
      broker.pause
      begin
        expect(elapsed { expect { relay.sweep }.to raise_error(AceMQ::AMQP::TransportError) }).to be < 8
      ensure
        broker.resume
      end
      relay.start

      eventually(20) { expect(outbox.pending_count).to eq 0 }
      expect(charged).to be_empty
      expect(ids_in(amqp, queue).uniq.size).to eq 20
    end

    it "a broker that is stopped and started" do
      put("s-0", to: queue)
      relay = new_relay(open_connection, interval: 0.1).start
      eventually { expect(marked).to eq %w[s-0] }
      broker.stop
      begin
        30.times { |n| put("s-#{n + 1}", to: queue) }
        eventually(10) { expect(relay.state.name).to eq :down }
        sleep outage
      ensure
        broker.start
      end

      eventually(30) { expect(outbox.pending_count).to eq 0 }
      expect(charged).to be_empty
      expect(ids_in(open_connection, queue).uniq.size).to be >= 30
    end
  end
end
