# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::SQLOutboxStore do
  subject(:store) { described_class.new(connection: source, max_attempts: 3) }

  def names
    rows("orders", order: "id").map { |row| row["name"] }
  end

  def insert(work, name)
    work.call("INSERT INTO orders (name) VALUES ('#{name}')")
  end

  def bodies
    store.pending.to_h { |record| [record.id, record.body.b] }
  end

  def expire_leases
    execute("UPDATE acemq_outbox SET locked_until = #{sql_time(-1)} WHERE locked_until IS NOT NULL")
  end

  shared_context "with its table" do
    before do
      connection { |db| db.drop_table("acemq_outbox", if_exists: true) }
      store.create_schema
      make_orders
    end
  end

  on_each_driver do
    include_context "with its table"

    it "makes its table once, with the index that claims walk along" do
      store.add(outbox_record("a"))

      expect { store.create_schema }.not_to output.to_stderr_from_any_process
      expect([store.check!.size, store.indexed?]).to eq [1, true]
    end

    it "adds with the work, or not at all" do
      transaction do |work|
        insert(work, "kept")
        store.add(outbox_record("kept"))
      end
      failing = lambda do
        transaction do
          store.add(outbox_record("gone"))
          raise "no stock"
        end
      end

      expect(&failing).to raise_error("no stock")
      expect(names).to eq %w[kept]
      expect(rows.map { |row| row["id"] }).to eq %w[kept]
    end

    # Case 2.
    it "harms no transaction by adding an id again" do
      store.add(outbox_record("dup"))
      transaction do |work|
        insert(work, "before")
        2.times { store.add(outbox_record("dup")) }
        insert(work, "after")
        store.add(outbox_record("dup"))
      end

      expect(names).to eq %w[before after]
      expect(store.size).to eq 1
    end

    it "takes an id that is tagged as binary for the text it is" do
      store.add(outbox_record("m-\u00e9".b))
      store.add(outbox_record("m-\u00e9"))
      store.pending
      store.mark_published("m-\u00e9".b)

      expect(rows.map { |row| row["id"] }).to eq ["m-\u00e9"]
      expect(store.size).to eq 0
    end

    # Case 11.
    it "gives every body back byte for byte" do
      given = { "nul" => "a\0b", "bytes" => (0..255).to_a.pack("C*"), "emoji" => "{\"x\":\"\u{1F600}'\\\\n\"}", "empty" => "",
                "long" => "x" * 70_000, "quotes" => "';--\\'\"" }
      given.each { |id, body| store.add(outbox_record(id, body: body)) }

      expect(bodies).to eq(given.transform_values(&:b))
    end

    it "gives the rest of a record back" do
      now = Time.now
      store.add(outbox_record("a", headers: { "n" => 1, "t" => "it's" }, exchange: "shop\\x", routing_key: "a'b", created_at: now))

      expect(store.pending.first).to have_attributes(id: "a", headers: { "n" => 1, "t" => "it's" }, exchange: "shop\\x",
                                                     routing_key: "a'b", content_type: "application/json", created_at: now.floor(6))
    end

    it "refuses what cannot be carried, before anything is written" do
      expect { store.add(outbox_record("")) }.to raise_error(ArgumentError, /needs an id/)
      expect { store.add(outbox_record("x" * 65)) }.to raise_error(ArgumentError, /id is 65 characters long/)
      expect { store.add(outbox_record("a", routing_key: "x" * 256)) }.to raise_error(ArgumentError, /256 bytes/)
      expect(store.size).to eq 0
    end

    it "leases what it gives, oldest first, and again when the lease is over" do
      add("a", "b", "c")

      expect(store.pending(2).map(&:id)).to eq %w[a b]
      expect(store.pending.map(&:id)).to eq [] # the third waits behind them
      expire_leases
      expect(store.pending(0).map(&:id)).to eq %w[a b c]
    end

    it "marks, and purges what is marked, in portions" do
      add("a", "b", "c")
      store.pending
      %w[a b].each { |id| store.mark_published(id) }

      expect([store.pending_count, store.size, store.purge_published(3600), store.purge_published(-1, batch: 1)]).to eq [1, 1, 0, 2]
      expect(rows.map { |row| row["id"] }).to eq %w[c]
    end

    it "counts a failure, keeps its reason, frees the record, and retires it at the ceiling" do
      add("a")
      attempts = Array.new(3) do
        store.pending.each { |record| store.mark_failed(record.id, "caf\xE9 \0 #{"x" * 2_000}".b) }.size
      end

      expect(attempts).to eq [1, 1, 1]
      expect(row("a")).to include("attempts" => 3, "locked_by" => nil, "locked_until" => nil)
      expect(row("a")["last_error"]).to match(/\Acaf\? .*x\.\.\.\z/).and have_attributes(length: 1_000)
      expect([store.pending, store.pending_count, store.retired.map(&:id), store.retry!]).to eq [[], 0, ["a"], 1]
    end

    it "claims, holds, and settles as a relay of this library wants it" do
      add("a1", "a2", routing_key: "a")
      add("b1", routing_key: "b")
      claim = store.claim(10)
      claim.settle(confirmed: ["b1"], held: [%w[a1 returned]], unsent: ["a2"])

      expect(store.claim(10)).to be_empty # a2 waits behind a1
      expect(store.held).to eq(%w[shop a] => 1)
      expect(store.claim(10, ignore_backoff: true).records.map(&:id)).to eq %w[a1 a2]
      expect(claim.settle(unsent: ["a1"]).lost).to eq 1
    end

    it "says what is missing" do
      nowhere = described_class.new(connection: source, table: "acemq_nowhere")

      expect { nowhere.check! }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /table acemq_nowhere in the .* does not exist.*create_schema/)
      transaction { |work| insert(work, "kept") && expect { nowhere.add(outbox_record) }.to(raise_error(AceMQ::AMQP::ConfigurationError)) }
      expect(names).to eq %w[kept]
    end

    it "raises what is no duplicate" do
      execute(database == :sqlite ? "DROP TABLE acemq_outbox" : "ALTER TABLE acemq_outbox ADD CHECK (routing_key <> 'bad')")
      if database == :sqlite
        execute(described_class.ddl.first.sub("routing_key VARCHAR(255) NOT NULL", "routing_key VARCHAR(255) CHECK (routing_key <> 'bad')"))
      end

      expect { store.add(outbox_record(routing_key: "bad")) }.to raise_error(/check/i)
    end

    it "relays to the broker and marks what it has" do
      conn = open_connection
      queue = new_queue(conn)
      records = Array.new(3) { |n| AceMQ::AMQP::Patterns.record(conn, { "n" => n }, to: queue) }
      records.each { |record| store.add(record) }

      expect(new_relay(conn, store).sweep).to eq 3
      expect(drain(conn, queue).map { |delivery| [delivery.message_id, delivery.body] })
        .to eq(records.map { |record| [record.id, record.body] })
      expect(rows.map { |row| [row["published_at"].nil?, row["locked_by"]] }.uniq).to eq [[false, nil]]
    end

    describe "on a table that a Rails application's migration made, in another time zone" do
      around do |example|
        before = ENV.fetch("TZ", nil)
        ENV["TZ"] = "America/New_York"
        example.run
        ENV["TZ"] = before
      end

      it "reads and writes the times that the application means" do
        make_outbox(:application)
        now = Time.now
        store.add(outbox_record("a", created_at: now))
        AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new.add(outbox_record("b", created_at: now))

        expect(store.oldest_pending_age).to be_between(0, 60)
        expect(store.pending.map(&:created_at)).to eq [now.floor(6)] * 2
        expect(AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new.claim(2)).to be_empty
        store.mark_published("a")
        expect([store.purge_published(60), store.purge_published(-60)]).to eq [0, 1]
      end
    end
  end

  on_each_database(:sqlite, :postgres) do
    include_context "with its table"

    let(:source) { -> { raw } }

    it "adds on the connection that it is given, and relays on another" do
      relay = connect_raw
      own = described_class.new(connection: -> { raise "not this one" }, relay: relay)
      raw.transaction do
        own.add(outbox_record("a"), connection: raw)
        expect(own.pending).to be_empty if database == :postgres
      end

      expect(own.pending.map(&:id)).to eq %w[a]
    end

    it "minds no type map and no shape of rows that the connection is set up with" do
      if database == :sqlite
        raw.results_as_hash = true
      else
        raw.type_map_for_results = PG::BasicTypeMapForResults.new(raw)
        raw.type_map_for_queries = PG::BasicTypeMapForQueries.new(raw)
        raw.field_name_type = :symbol
      end
      store.add(outbox_record("a"))

      expect(store.pending.map(&:id)).to eq %w[a]
      expect([store.mark_published("a"), store.purge_published(-1)]).to eq [1, 1]
    end
  end

  on_each_database(:postgres) do
    include_context "with its table"

    let(:source) { raw }

    # Case 22.
    it "connects again when its own connection is dead" do
      store.add(outbox_record("a"))
      execute("SELECT pg_terminate_backend(#{raw.backend_pid})") rescue nil # rubocop:disable Style/RescueModifier
      expect { store.pending }.to raise_error(PG::Error)

      expect(store.pending.map(&:id)).to eq %w[a]
    end

    it "makes its indexes beside a table of the same name in another schema" do
      raw.exec("CREATE SCHEMA elsewhere")
      tables = ["elsewhere.acemq_outbox", "elsewhere.acemq_idempotency"]
      stores = [described_class, AceMQ::AMQP::Patterns::SQLIdempotencyStore].zip(tables)
      indexes = tables.map { |table| "SELECT count(*) FROM pg_index WHERE indrelid = to_regclass('#{table}')" }
      AceMQ::AMQP::Patterns::SQLIdempotencyStore.new(connection: raw).create_schema
      stores.each { |store, table| 2.times { store.new(connection: raw, table: table).create_schema } }

      expect(described_class.new(connection: raw, table: tables.first)).to be_indexed
      expect(indexes.map { |sql| raw.exec(sql).getvalue(0, 0).to_i }).to eq [3, 2]
    ensure
      raw.exec("SET client_min_messages = warning; DROP SCHEMA elsewhere CASCADE; DROP TABLE IF EXISTS acemq_idempotency")
    end

    it "does not mind another encoding of the client" do
      raw.exec("SET client_encoding TO LATIN1")
      raw.internal_encoding = "ISO-8859-1"
      given = { "a" => "\u00e9", "b" => "\u{1F600}", "c" => "plain" }
      given.each { |id, body| store.add(outbox_record(id, body: body)) }

      expect(bodies).to eq(given.transform_values(&:b))
    end

    it "is right whatever a backslash means" do
      raw.exec("SET standard_conforming_strings = off; SET escape_string_warning = off")
      store.add(outbox_record("a\\'b", body: "\\' OR 1=1 --"))

      expect(bodies).to eq("a\\'b" => "\\' OR 1=1 --".b)
    end
  end

  on_each_database(:sqlite) do
    include_context "with its table"

    let(:source) { -> { raw } }

    # Case 23.
    it "waits for a locked file without stopping the thread that has the lock" do
      store.add(outbox_record("a"))
      other = connect_raw
      locked = Thread::Queue.new
      holder = Thread.new do
        other.transaction(:immediate) do
          locked << true
          sleep 0.2 # the lock is held for as long as this thread needs
        end
      end
      locked.pop

      expect(elapsed { expect(store.pending.map(&:id)).to eq %w[a] }).to be < 4
      holder.join
      expect(raw.execute("PRAGMA busy_timeout").flatten).to eq [5_000]
    end
  end

  it "names what is wrong when it is built" do
    expect { described_class.new(connection: -> {}, max_attempts: 0) }.to raise_error(ArgumentError, /max_attempts: must be/)
    expect { described_class.new(connection: -> {}, lease: 0) }.to raise_error(ArgumentError, /lease: must be seconds above 0/)
    expect { described_class.new(connection: -> {}, table: "1st") }.to raise_error(ArgumentError, /is no table name/)
    expect { described_class.new(connection: -> {}, relay: 7) }.to raise_error(ArgumentError, /Integer is no connection/)
    expect { described_class.ddl("no name") }.to raise_error(ArgumentError, /is no table name/)
    expect(described_class.new(connection: -> {})).to have_attributes(table: "acemq_outbox", lease: 60.0, max_attempts: 10)
    expect(described_class.ddl("my_outbox").first).to start_with "CREATE TABLE IF NOT EXISTS my_outbox ("
  end
end
