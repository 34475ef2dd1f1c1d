# frozen_string_literal: true

require "timeout"

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "interrupted while it claims" do
  subject(:store) { described_class.new }

  # Ends the thread as soon as a statement of this name has run.
  def killed_after(name, &work)
    thread = nil
    kill = ->(*, payload) { Thread.exit if Thread.current == thread && payload[:name] == name }
    ActiveSupport::Notifications.subscribed(kill, "sql.active_record") do
      go = Thread::Queue.new
      thread = Thread.new { go.pop && work.call }
      go << 1
      thread.join
    end
  end

  def leased
    rows.select { |row| row["locked_by"] }.map { |row| row["id"] }
  end

  # Has the server take its time for every row that it leases.
  def slow_leases(seconds)
    body = "IF NEW.locked_by IS NOT NULL THEN %s; END IF; %s"
    if database == :postgres
      execute("CREATE OR REPLACE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS " \
              "$$ BEGIN #{format(body, "PERFORM pg_sleep(#{seconds})", "RETURN NEW;")} END $$")
      execute("CREATE TRIGGER slowly BEFORE UPDATE ON acemq_outbox FOR EACH ROW EXECUTE FUNCTION slowly()")
    else
      execute("CREATE TRIGGER slowly BEFORE UPDATE ON acemq_outbox FOR EACH ROW " \
              "BEGIN #{format(body, "DO SLEEP(#{seconds})", "")} END")
    end
    yield
  ensure
    execute("DROP TRIGGER slowly#{" ON acemq_outbox" if database == :postgres}")
  end

  # Whoever reads the table waits for the end of the block.
  def locking
    beside = ActiveRecord::Base.connection_pool.checkout
    beside.begin_db_transaction
    beside.execute("LOCK TABLE acemq_outbox")
    yield
  ensure
    beside.rollback_db_transaction
    ActiveRecord::Base.connection_pool.checkin(beside)
  end

  on_each_database do |name|
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      add("a", "b")
    end

    %i[destination strict none].each do |ordering|
      it "leaves no row leased that it had leased, ordering #{ordering}" do
        killed_after("AceMQ lease") { store.claim(10, ordering: ordering) }

        expect(leased).to be_empty
        expect(store.claim(10).records.map(&:id)).to eq %w[a b]
      end
    end

    next if name == :sqlite # whose driver cannot be interrupted

    it "leaves no row leased that the server was leasing" do
      slow_leases(0.2) do
        expect { Timeout.timeout(0.1) { store.claim(10) } }.to raise_error(Timeout::Error)
        eventually { expect(leased).to be_empty }
      end

      expect(store.claim(10).records.map(&:id)).to eq %w[a b]
    end

    next unless name == :postgres # MariaDB's driver puts interrupts off until it has its answer

    it "ends a relay's sweep that waits for the database" do
      relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::SpecSupport::ScriptedPipeline.new, store)
      relay.sweep
      locking do
        sweep = Thread.new { Timeout.timeout(0.1) { relay.sweep } }
        sweep.report_on_exception = false
        expect { sweep.join(5) }.to raise_error(Timeout::Error)
      end
    end
  end
end
