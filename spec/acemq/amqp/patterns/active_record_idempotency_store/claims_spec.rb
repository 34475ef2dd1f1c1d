# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore, "claims" do
  subject(:store) { described_class.new }

  let(:table) { "acemq_idempotency" }

  # In an execution of its own, as another worker.
  def elsewhere(&block)
    Thread.new(&block).value
  end

  def key_row(key)
    rows(table, order: "message_id").find { |row| row["message_id"] == key }
  end

  def age(key, seconds)
    execute("UPDATE #{table} SET recorded_at = #{sql_time(-seconds)} WHERE message_id = '#{key}'")
  end

  def expire(key)
    execute("UPDATE #{table} SET expires_at = #{sql_time(-1)} WHERE message_id = '#{key}'")
  end

  shared_examples "a store of keys" do
    it "answers in three ways" do
      expect(store.claim("k")).to eq :claimed
      expect(elsewhere { store.claim("k") }).to eq :in_progress
      expect(store.confirm("k")).to be true
      expect(elsewhere { store.claim("k") }).to eq :duplicate
      expect(store.claim("other")).to eq :claimed
    end

    it "says first time to the one that may work, and to nobody else" do
      expect(store.first_time?("k")).to be true
      expect(elsewhere { store.first_time?("k") }).to be false
      expect(store.first_time?("k")).to be false
    end

    it "gives a forgotten key to the next one" do
      store.claim("k")

      expect(store.forget("k")).to be true
      expect(elsewhere { store.claim("k") }).to eq :claimed
    end

    it "hands a stale claim over, whether its lease or its age says so" do
      store.claim("expired")
      store.claim("old")
      expire("expired")
      age("old", 301)

      expect(elsewhere { %w[expired old].map { |key| store.claim(key) } }).to eq %i[claimed claimed]
      expect(elsewhere { %w[expired old].map { |key| store.claim(key) } }).to eq %i[in_progress in_progress]
    end

    it "hands a confirmed key over only when its retention has ended" do
      store.claim("k")
      store.confirm("k")
      age("k", 100_000)
      expect(elsewhere { store.claim("k") }).to eq :duplicate

      expire("k")
      expect(elsewhere { store.claim("k") }).to eq :claimed
    end

    describe "whoever has lost a claim" do
      before do
        store.claim("k")
        age("k", 301)
        elsewhere { store.claim("k") }
      end

      it "cannot confirm it, and is told so" do
        before = key_row("k")

        expect { store.confirm("k") }
          .to raise_error(AceMQ::AMQP::Patterns::ClaimLostError, /claim on "k" was taken over.*claim_timeout \(300 s\)/)
        expect(key_row("k")).to eq before
      end

      it "cannot take it from its new owner" do
        expect(store.forget("k")).to be false
        expect(elsewhere { store.claim("k") }).to eq :in_progress
      end

      it "has its transaction rolled back" do
        make_orders
        expect do
          ActiveRecord::Base.transaction do
            ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('late')")
            store.confirm("k")
          end
        end.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError)

        expect(rows("orders", order: "id")).to eq []
        ActiveRecord::Base.connection_pool.release_connection
      end
    end

    it "changes nothing for an execution that has not claimed the key" do
      store.claim("k")

      expect(elsewhere { [store.confirm("k"), store.forget("k")] }).to eq [false, false]
      expect(Fiber.new { [store.confirm("k"), store.forget("k")] }.resume).to eq [false, false]
      expect(store.confirm("never seen")).to be false
      expect(store.size).to eq 1
      expect(key_row("k")["state"]).to eq "CLAIMED"
    end

    it "lets another store object of the same table confirm, in the same execution" do
      store.claim("k")

      expect(described_class.new.confirm("k")).to be true
      expect(elsewhere { store.claim("k") }).to eq :duplicate
    end

    it "confirms again without harm and without writing" do
      store.claim("k")
      store.confirm("k")
      before = key_row("k")

      expect(described_class.new.confirm("k")).to be true
      expect(key_row("k")).to eq before
    end

    it "confirms with the transaction that does the work" do
      store.claim("k")
      ActiveRecord::Base.transaction { store.confirm("k") }
      ActiveRecord::Base.connection_pool.release_connection

      expect(store.confirm("k")).to be true
      expect(store.confirmed?("k")).to be true
    end

    it "gives the key back when that transaction rolls back, and confirms when told to all the same" do
      store.claim("k")
      ActiveRecord::Base.transaction do
        store.confirm("k")
        raise ActiveRecord::Rollback
      end
      ActiveRecord::Base.connection_pool.release_connection
      expect(elsewhere { store.claim("k") }).to eq :in_progress

      expect(store.confirm("k")).to be true
      expect(elsewhere { store.claim("k") }).to eq :duplicate
    end

    it "forgets after such a rollback" do
      store.claim("k")
      ActiveRecord::Base.transaction do
        store.confirm("k")
        raise ActiveRecord::Rollback
      end
      ActiveRecord::Base.connection_pool.release_connection

      expect(store.forget("k")).to be true
      expect(elsewhere { store.claim("k") }).to eq :claimed
    end

    it "never forgets what is confirmed" do
      store.claim("k")
      store.confirm("k")

      expect(store.forget("k")).to be false
      expect(store.confirmed?("k")).to be true
    end

    it "tells different keys apart, however alike" do
      keys = ["abc", "ABC", "Abc", "äbc", "abc ", " abc", "abc\t", "ABC ", "a%c", "a_c", "straße", "strasse", "ａｂｃ", "😀", "😁",
              "a'b", "a\\b", "a\"b", "charge:A-1", "charge:a-1"]
      expect(keys.map { |key| store.claim(key) }).to all(eq :claimed)
      keys.each { |key| store.confirm(key) }

      expect(elsewhere { keys.map { |key| store.claim(key) }.uniq }).to eq [:duplicate]
      expect(store.size).to eq keys.size
    end

    it "takes keys of any length and any bytes, and tells neighbours apart" do
      keys = ["k" * 255, "k" * 256, "k" * 257, "é" * 255, "é" * 256, "#{"x" * 300}1", "#{"x" * 300}2", "nul\0a", "nul\0b", "nula",
              "\xFF\xFE", "\xFF\xFD", "binary\xFF".b, "text".b, :symbol, 42]
      expect(keys.map { |key| store.claim(key) }).to all(eq :claimed)
      keys.each { |key| store.confirm(key) }

      expect(elsewhere { keys.map { |key| store.claim(key) }.uniq }).to eq [:duplicate]
      expect(store.claim("text")).to eq :duplicate
      expect(rows(table, order: "message_id").map { |row| row["message_id"].length }.max).to be <= 255
    end

    it "refuses an empty key" do
      expect { store.claim("") }.to raise_error(ArgumentError, /key is empty/)
      expect { store.first_time?(nil) }.to raise_error(ArgumentError, /key is empty/)
    end

    it "knows what is confirmed" do
      expect(store.confirmed?("k")).to be false
      store.claim("k")
      expect(store.confirmed?("k")).to be false
      store.confirm("k")
      expect(store.confirmed?("k")).to be true
      expire("k")
      expect(store.confirmed?("k")).to be false
    end

    it "purges what has expired, in portions, and nothing else" do
      keys = Array.new(7) { |i| "old#{i}" }
      (keys + %w[live done]).each { |key| store.claim(key) }
      store.confirm("done")
      keys.each { |key| expire(key) }

      expect(store.purge_expired(batch: 2)).to eq 7
      expect(rows(table, order: "message_id").map { |row| row["message_id"] }).to eq %w[done live]
      expect(store.purge_expired).to eq 0
    end

    it "has no connection checked out afterwards" do
      store.claim("k")
      store.confirm("k")

      expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
    end
  end

  on_each_database do
    %i[ours application].each do |origin|
      describe "in a table of origin #{origin}" do
        before(:context) { make_idempotency(origin) }
        before { empty(table) }

        include_examples "a store of keys"
      end
    end

    describe "under concurrency" do
      before do
        make_idempotency
        empty(table)
      end

      it "gives a key of many claimers to one of them: fresh, stale, or confirmed" do
        fresh = Array.new(4) { |i| "fresh#{i}" }
        stale = Array.new(4) { |i| "stale#{i}" }
        done = Array.new(2) { |i| "done#{i}" }
        (stale + done).each { |key| store.claim(key) }
        done.each { |key| store.confirm(key) }
        stale.each { |key| age(key, 301) }

        answers = Hash.new { |hash, key| hash[key] = Queue.new }
        (fresh + stale + done).each { |key| answers[key] }
        Array.new(50) do
          Thread.new { (fresh + stale + done).shuffle.each { |key| answers[key] << described_class.new.claim(key) } }
        end.each(&:join)

        tallies = answers.transform_values { |queue| Array.new(queue.size) { queue.pop }.tally }
        expect(tallies.values_at(*fresh, *stale)).to all(eq(claimed: 1, in_progress: 49))
        expect(tallies.values_at(*done)).to all(eq(duplicate: 50))
      end
    end
  end

  describe "rows of other stores" do
    def write(key, state, recorded_at:, expires_at:, by: "host:1")
      execute("INSERT INTO #{table} (message_id, state, claimed_by, recorded_at, expires_at) " \
              "VALUES ('#{key}', '#{state}', '#{by}', #{recorded_at}, #{expires_at})")
    end

    on_each_database do
      before { make_idempotency(:application) }

      it "are judged right although the application's store writes the retention from the start" do
        day = sql_time(86_400)
        write("live", "CLAIMED", recorded_at: sql_time(-10), expires_at: day)
        write("stale", "CLAIMED", recorded_at: sql_time(-310), expires_at: day)
        write("done", "CONFIRMED", recorded_at: sql_time(-310), expires_at: day)
        write("Done: B", "CONFIRMED", recorded_at: sql_time(-310), expires_at: day)
        write("Live: B", "CLAIMED", recorded_at: sql_time(-10), expires_at: day)
        write("Stale: B", "CLAIMED", recorded_at: sql_time(-310), expires_at: day)

        expect(["live", "stale", "done", "Done: B", "Live: B", "Stale: B"].map { |key| store.claim(key) })
          .to eq %i[in_progress claimed duplicate duplicate in_progress claimed]
        expect([store.confirmed?("done"), store.confirmed?("Done: B")]).to eq [true, true]
      end

      it "are not mistaken for a key that they only resemble" do
        write("ABC", "CONFIRMED", recorded_at: sql_time(-1), expires_at: sql_time(86_400))

        expect(store.claim("abc")).not_to eq :duplicate
      end
    end

    on_each_database(:sqlite, :postgres) do
      before { make_idempotency(:family) }

      def text(seconds)
        "'#{(Time.now.utc + seconds).strftime("%Y-%m-%dT%H:%M:%S.%6NZ")}'"
      end

      it "are judged right as the family's libraries write them" do
        write("live", "CLAIMED", recorded_at: text(-10), expires_at: text(290))
        write("stale", "CLAIMED", recorded_at: text(-301), expires_at: text(-1))
        write("done", "CONFIRMED", recorded_at: text(-301), expires_at: text(100))
        write("over", "CONFIRMED", recorded_at: text(-301), expires_at: text(-1))

        expect(%w[live stale done over].map { |key| store.claim(key) }).to eq %i[in_progress claimed duplicate claimed]
        expect(store.purge_expired).to eq 0
      end

      it "are written so that those judge ours" do
        store.claim("k")
        expires_at = Time.parse("#{key_row("k")["expires_at"]} UTC".sub(/Z UTC|UTC UTC/, "UTC"))

        expect(expires_at - Time.now).to be_between(295, 301)
        expect(key_row("k")["expires_at"]).to match(/T.*Z\z/) if database == :sqlite
      end
    end
  end

  describe "with a model" do
    on_each_database(:sqlite) do
      it "uses its table" do
        make_idempotency(:ours, name: "handled_messages")
        model = Class.new(ActiveRecord::Base) { self.table_name = "handled_messages" }
        of_model = described_class.new(model: model)

        expect([of_model.table, of_model.claim("k"), of_model.size]).to eq ["handled_messages", :claimed, 1]
      end
    end
  end

  describe "what one execution remembers" do
    on_each_database(:sqlite) do
      before { make_idempotency }

      it "stays small, however many claims are never settled" do
        remembered = elsewhere do
          ActiveRecord::Base.transaction do
            1_100.times { |i| store.claim("k#{i}") }
          end
          ActiveRecord::Base.connection_pool.release_connection
          [Thread.current[AceMQ::AMQP::Patterns::ExecutionClaims::VARIABLE].size, store.confirm("k1099")]
        end

        expect(remembered).to eq [AceMQ::AMQP::Patterns::ExecutionClaims::LIMIT, true]
      end
    end
  end

  on_each_database do
    it "names a table that is not there" do
      nowhere = described_class.new(table: "acemq_nowhere")
      message = /table acemq_nowhere in the .* does not exist: .*acemq:install/

      expect { nowhere.check! }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
      expect { nowhere.claim("k") }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    end
  end

  it "names what is wrong when it is built" do
    expect { described_class.new(retention: 0) }.to raise_error(ArgumentError, /retention: must be seconds above 0/)
    expect { described_class.new(claim_timeout: "5") }.to raise_error(ArgumentError, /claim_timeout/)
    expect { described_class.new(table: "no name") }.to raise_error(ArgumentError, /is no table name/)
    expect { described_class.new(model: Object) }.to raise_error(ArgumentError, /model:/)
  end
end
