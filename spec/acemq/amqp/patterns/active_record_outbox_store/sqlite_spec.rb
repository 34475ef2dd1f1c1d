# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "beside web threads on one SQLite file" do
  subject(:store) { described_class.new }

  # How long the process as a whole stood still at worst.
  def longest_freeze
    longest = 0
    stop = false
    ticker = Thread.new do
      last = clock
      until stop
        sleep 0.01
        now = clock
        longest = [longest, now - last].max
        last = now
      end
    end
    yield
    longest
  ensure
    stop = true
    ticker.join
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def relay_once
    claim = store.claim(10)
    claim.renew
    claim.settle(confirmed: claim.records.map(&:id))
  end

  def busy_timeout
    connection { |db| db.select_value("PRAGMA busy_timeout") }
  end

  %w[wal delete].each do |mode|
    # Rails 7.1 and later set the mode with every connection.
    on_each_database(:sqlite, timeout: 2_000, pragmas: { journal_mode: mode }) do
      it "costs no transaction of theirs, and does not stop the process while it waits (#{mode})" do
        ActiveRecord::Base.connection_pool.disconnect! # the mode of a file changes only while nobody else has it open
        connection { |db| db.execute("PRAGMA journal_mode = #{mode}") }
        make_outbox
        make_orders
        stop = false
        relay = Thread.new do
          until stop
            relay_once
            sleep 0.02
          end
        end

        orders = 6
        freeze = longest_freeze do
          orders.times do |i|
            ActiveRecord::Base.transaction do
              ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('#{i}')")
              sleep 0.3 # the file is locked, and the relay wants it
              store.add(outbox_record(i.to_s))
            end
            ActiveRecord::Base.connection_pool.release_connection
          end
        end
        stop = true
        relay.join
        relay_once

        expect(rows("orders", order: "id").size).to eq orders
        expect(rows.map { |row| row["published_at"] }).to all(be)
        expect(freeze).to be < 1.5 # the driver's own waiting would have taken the whole timeout of 2 s
      end
    end
  end

  on_each_database(:sqlite, timeout: 2_000, pragmas: { journal_mode: "wal" }) do
    # Somebody else writes, or would like to, whenever the table is looked at.
    def beside_a_writer(&block)
      other = SQLite3::Database.new(AceMQ::SpecSupport::Database.config(:sqlite)[:database])
      write = lambda do |*, statement|
        other.execute("INSERT INTO orders (name) VALUES ('other')") if statement[:name] == "SCHEMA"
      rescue SQLite3::BusyException
        nil
      end
      ActiveSupport::Notifications.subscribed(write, "sql.active_record", &block)
    ensure
      other.close
    end

    # Case 23: a transaction that reads first and then wants to write fails at once.
    it "takes part in a transaction that it begins, in a process that has not used it before" do
      connection { |db| db.execute("PRAGMA journal_mode = wal") }
      make_outbox
      make_orders
      beside_a_writer { ActiveRecord::Base.transaction { store.add(outbox_record("a")) } }

      expect(row("a")).to be
    end

    it "says that the table is not there when it is not, in a transaction too" do
      connection { |db| db.drop_table("acemq_outbox", if_exists: true) }
      AceMQ::AMQP::Patterns::Database::TABLES.clear

      expect { ActiveRecord::Base.transaction { store.add(outbox_record("a")) } }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /acemq_outbox/)
    end
  end

  on_each_database(:sqlite, timeout: 2_000) do
    it "leaves the connection waiting as it was set up to" do
      make_outbox
      add("a")
      relay_once

      expect(busy_timeout).to eq 2_000
    end
  end

  on_each_database(:sqlite, timeout: 200) do
    it "gives up when the file stays locked for longer than the configured timeout" do
      make_outbox
      add("a")
      ActiveRecord::Base.transaction do
        add("b")
        busy = Thread.new do
          relay_once
        rescue ActiveRecord::StatementInvalid => e
          e.cause
        end
        expect(busy.value).to be_a(SQLite3::BusyException)
      end
      ActiveRecord::Base.connection_pool.release_connection
      expect(busy_timeout).to eq 200

      relay_once
      expect(store.pending_count).to eq 0
    end
  end
end
