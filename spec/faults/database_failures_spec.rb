# frozen_string_literal: true

# Cases 22, 23 and the first part of 24: what a database does to a relay that runs for months. The relay mends itself;
# its thread is the same one all the time.
RSpec.describe "A database that fails", :broker do
  long = ENV["ACEMQ_LONG"] == "1"
  outage = long ? 5 : 1.5 # seconds

  on_each_database(:postgres, :mariadb) do
    before do
      %w[Judge Rival].each do |name|
        session = stub_const(name, Class.new(ActiveRecord::Base) { self.abstract_class = true })
        session.establish_connection(AceMQ::SpecSupport::Database.config(database).merge(pool: 1))
      end
      make_outbox
      relay.start
      put("first", to: queue)
      eventually { expect(marked).to eq %w[first] }
      @thread = relay_thread
    end

    after do
      expect(@thread).to be_alive.and be(relay_thread)
      [Judge, Rival].each(&:remove_connection)
      ActiveRecord::Base.connection_pool.release_connection # which is looked at when it is taken out again
    end

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 3) }
    let(:relay) { new_relay(amqp, store, interval: 0.2, confirm_timeout: 2) }

    def relay_thread
      Thread.list.find { |thread| thread.name == "acemq-relay" }
    end

    def server
      AceMQ::TestServers.public_send(database)
    end

    # Looks on, over a session of its own: those of ActiveRecord::Base's pool are the ones that suffer.
    def connection(&block)
      Judge.connection_pool.with_connection(&block)
    end

    def kill_sessions
      connection do |db|
        if database == :postgres
          db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity " \
                     "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        else
          db.select_values("SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()")
            .each { |id| db.execute("KILL #{id}") }
        end
      end
    end

    # Between the confirms and the marks of the next batch.
    def between_confirm_and_mark(&block)
      failpoint = AceMQ::AMQP::Patterns::Failpoint
      passages = 0
      allow(failpoint).to receive(:reach).and_call_original
      allow(failpoint).to receive(:reach).with(:after_confirm) { block.call if (passages += 1) == 1 }
    end

    def expect_sent_after(id, copies: 1)
      put(id, to: queue)
      eventually(10) { expect(marked).to include id }
      expect(ids_in(amqp, queue).tally.fetch(id)).to be_between(1, copies)
      expect(charged).to be_empty
    end

    def told
      Array.new(reported.size) { reported.pop.message }
    end

    # Case 22. What was confirmed is marked as soon as the database lets us, and not sent again.
    it "between the confirm and the mark costs a report, and no second copy" do
      between_confirm_and_mark { kill_sessions }
      expect_sent_after("unmarked")
      expect(told.size).to be <= 1 # ActiveRecord from 7.1 on mends it before anybody notices
      expect_sent_after("next")
    end

    it "by a deadlock, in which the relay's statement is the one to go, is over at the next look" do
      expect_sent_after("before")
      between_confirm_and_mark { lock_against_the_relay(%w[a b]) }
      ActiveRecord::Base.transaction { %w[a b].each { |id| put(id, to: queue) } }
      eventually(10) { expect(marked).to include("a", "b") }

      @rival.join
      expect(told).to match [/deadlock/i]
      expect(ids_in(amqp, queue).tally).to eq("a" => 1, "b" => 1)
      expect_sent_after("next")
    end

    # Another session holds the second row, and asks for the first when the relay has it.
    def lock_against_the_relay((first, second))
      held = Thread::Queue.new
      @rival = Thread.new do
        Rival.transaction do
          Rival.connection.execute("SET LOCAL deadlock_timeout = '30s'") if database == :postgres # the other one notices
          touch("first", "before", second) # the one that has done less has to go
          held << true
          wait_until_waited_for
          touch(first)
          raise ActiveRecord::Rollback
        end
      end
      held.pop
    end

    def touch(*ids)
      ids.each { |id| Rival.connection.execute("UPDATE acemq_outbox SET last_error = 'rival' WHERE id = '#{id}'") }
    end

    def wait_until_waited_for
      waiting = if database == :postgres
                  "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                else
                  "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
                end
      eventually { sleep(0.15) && expect(value(waiting).to_i).to(be_positive) } # asked more often, MariaDB says what it knows
    end

    # As when a replica takes over: the sessions of its time as a replica never become writable.
    it "by sessions that are read-only mends when new ones are not" do
      read_only(true)
      kill_sessions
      connection { |db| db.execute(insert("waiting")) }
      eventually { expect(relay.state.name).to eq :down }
      read_only(false)

      eventually(10) { expect(marked).to include "waiting" }
      expect(told.size).to eq 1
      expect_sent_after("next")
      eventually { expect(relay.state.name).to eq :idle }
    ensure
      read_only(false)
    end

    # For sessions that begin from now on.
    def read_only(switch)
      connection do |db|
        next db.execute("SET GLOBAL tx_read_only = #{switch ? 1 : 0}") if database == :mariadb

        db.execute("ALTER DATABASE #{db.current_database} SET default_transaction_read_only = #{switch ? "on" : "off"}")
      end
    end

    def insert(id)
      "INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at) " \
        "VALUES ('#{id}', '', '#{queue}', '{}', 'utf-8', 'application/json', '{}', #{sql_time(0)})"
    end

    # Case 22, the last part.
    it "by being away for #{outage} s is told once, and the relay works within two looks of its return" do
      skip "a server that is not ours cannot be stopped" unless server.ours?

      server.stop
      begin
        eventually { expect(relay.state.name).to eq :down }
        sleep outage # what is asked is what happens during this time
      ensure
        server.start
      end

      expect(told.size).to eq 1
      expect_sent_after("next")
      eventually { expect(relay.state.name).to eq :idle }
    end
  end

  # Case 23.
  %w[wal delete].each do |mode|
    on_each_database(:sqlite, timeout: 2_000, pragmas: { journal_mode: mode }) do
      it "for being one file with others at it, journal #{mode}, costs no transaction of theirs, and nothing stays behind" do
        ActiveRecord::Base.connection_pool.disconnect! # the mode of a file changes only while nobody else has it open
        connection { |db| db.execute("PRAGMA journal_mode = #{mode}") }
        make_outbox
        make_orders
        amqp = open_connection
        queue = new_queue(amqp)
        relay = new_relay(amqp, interval: 0.1).start
        orders = long ? 70 : 5

        orders.times do |n|
          ActiveRecord::Base.transaction do
            ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('#{n}')")
            sleep 0.4 # the file is locked, and the relay wants it
            put("o-#{n}", to: queue)
          end
          ActiveRecord::Base.connection_pool.release_connection
        end
        eventually { expect(marked.size).to eq orders }
        expect(rows("orders", order: "id").size).to eq orders
        expect(ids_in(amqp, queue)).to eq(Array.new(orders) { |n| "o-#{n}" })
        expect(relay).to be_running
      end
    end
  end

  # The first part of case 24.
  on_each_database(:postgres, :mariadb, pool: 1) do
    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }

    # Somebody else's.
    def beside
      other = stub_const("Other", Class.new(ActiveRecord::Base) { self.abstract_class = true })
      other.establish_connection(AceMQ::SpecSupport::Database.config(database))
      yield other.connection
    ensure
      other.remove_connection
    end

    def insert(id)
      "INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at) " \
        "VALUES ('#{id}', '', '#{queue}', '{}', 'utf-8', 'application/json', '{}', #{sql_time(0)})"
    end

    it "for lending one connection only is shared with a relay that keeps none between two looks" do
      make_outbox
      sleeping = database == :postgres ? "SELECT pg_sleep(0.05)" : "SELECT SLEEP(0.05)"
      relay = new_relay(amqp, interval: 0.2).start
      thread = Thread.list.find { |one| one.name == "acemq-relay" }
      done = false
      web = Thread.new { connection { |db| db.select_value(sleeping) } until done }
      web.report_on_exception = false
      beside { |db| 5.times { |n| db.execute(insert("p-#{n}")) } }
      eventually { expect(amqp.message_count(queue)).to eq 5 }
      beside { |db| db.execute(insert("later")) }
      eventually(2) { expect(amqp.message_count(queue)).to eq 6 }

      done = true
      web.value # raises what was raised
      expect(reported).to be_empty
      eventually { expect(ActiveRecord::Base.connection_pool.connections.map(&:owner)).not_to include(thread) }
      expect(relay).to be_running
      expect(marked.size).to eq 6
    end

    it "for not having the table yet is told once, and the relay works when it has" do
      connection { |db| db.drop_table("acemq_outbox", if_exists: true) }
      AceMQ::AMQP::Patterns::Database::TABLES.clear
      relay = new_relay(amqp, interval: 0.1).start
      eventually { expect(relay.state).to have_attributes(name: :down, reason: /acemq_outbox.*does not exist/) }
      make_outbox
      put("at-last", to: queue)

      eventually { expect(marked).to eq %w[at-last] }
      expect(reported.size).to eq 1
    end
  end
end
