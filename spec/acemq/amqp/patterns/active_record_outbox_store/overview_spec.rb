# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "overview" do
  subject(:store) { described_class.new }

  on_each_database do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    it "knows who holds leases, since when and for how long" do
      add("a", "b", "c", routing_key: "one")
      add("d", routing_key: "two")
      before = Time.now
      store.claim(3)
      store.claim(1)

      expect(store.leases).to match [
        have_attributes(rows: 3, holder: end_with("process #{Process.pid}"), since: be_between(before - 0.002, Time.now),
                        seconds_left: be_between(20, 30)),
        have_attributes(rows: 1)
      ]
    end

    it "counts no lease that is over, no backoff, and nothing published" do
      add("a", "b", "c")
      execute("UPDATE acemq_outbox SET locked_by = 'x', locked_until = #{sql_time(-1)} WHERE id = 'a'")
      execute("UPDATE acemq_outbox SET locked_until = #{sql_time(10)} WHERE id = 'b'")
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-1)}, locked_by = 'x', locked_until = #{sql_time(9)} WHERE id = 'c'")

      expect(store.leases).to eq []
    end

    it "counts what was published lately, and what a purge would remove" do
      add("a", "b", "c", "d")
      store.mark_published(%w[a b c])
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-100)} WHERE id = 'a'")
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-86_400 * 3)} WHERE id = 'b'")

      expect([10, 200, 86_400 * 4].map { |seconds| store.published_within(seconds) }).to eq [1, 2, 3]
      expect([10, 200, 86_400 * 4].map { |seconds| store.purgeable_count(seconds) }).to eq [2, 1, 0]
    end

    it "knows its destinations, and why they take nothing" do
      add("a", "b", routing_key: "one")
      add("c", "d", exchange: "", routing_key: "two")
      store.claim(10).settle(confirmed: ["a"], held: [["c", "no queue"]], failed: [["b", "too large", true]], unsent: ["d"])

      expect(store.destinations.map(&:to_a)).to eq [["", "two", 2, 0, 0, "no queue"], ["shop", "one", 0, 1, 1, nil]]
      expect(store.destinations(1).size).to eq 1
    end

    it "knows first those destinations that wait" do
      add("published", "retired", routing_key: "a")
      add("waits", routing_key: "b")
      add("held", routing_key: "c")
      store.claim(10).settle(confirmed: ["published"], held: [["held", "no queue"]], failed: [["retired", "too large", true]],
                             unsent: ["waits"])

      expect(store.destinations.map(&:routing_key)).to eq %w[c b a]
      expect(store.destinations(1).map(&:error)).to eq ["no queue"]
    end

    it "shows what is pending without leasing it" do
      add("a", "b")
      expect(store.peek(1).map { |record| [record.id, record.body] }).to eq [["a", "{}"]]
      expect(claimed_ids).to eq %w[a b]
    end

    it "answers a ping" do
      expect(store.ping).to be store
      expect { described_class.new(table: "acemq_nowhere").ping }.to raise_error(AceMQ::AMQP::ConfigurationError)
    end

    it "knows the clock of its database" do
      expect(store.examine { |sql| sql.db.clock }).to be_within(2).of(Time.now.to_f)
    end

    it "brings back retired rows of a destination or a reason" do
      add("a", "b", routing_key: "one")
      add("c", exchange: "other", routing_key: "one")
      store.claim(10).settle(failed: [["a", "50% of it", true], ["b", "50 of it", true], ["c", "50% of it", true]])

      expect(store.retry!(error: "50%", exchange: "shop")).to eq 1
      expect(store.retry!(%w[a b c], routing_key: "one", exchange: "other")).to eq 1
      expect(store.retired.map(&:id)).to eq %w[b]
      expect(store.retry!(routing_key: "two")).to eq 0
    end

    it "purges with pauses, and says how far it is" do
      add(*Array.new(5) { |n| "p#{n}" })
      store.mark_published(Array.new(5) { |n| "p#{n}" })
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-10)}")
      seen = []
      before = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      expect(store.purge_published(1, batch: 2, pause: 0.05) { |removed| seen << removed }).to eq 5
      expect(seen).to eq [2, 4, 5]
      expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - before).to be >= 0.1
      expect { store.purge_published(1, pause: -1) }.to raise_error(ArgumentError, /pause: must be seconds/)
    end

    # The article's 256 KB.
    it "refuses a body beyond its limit, before anything is written, with the size and the limit" do
      add("small", body: "x" * 262_144)
      expect { add("large", body: "x" * 262_145) }
        .to raise_error(ArgumentError, /body for "order.placed" is 262145 bytes long, and this outbox takes 262144: .*max_payload:/)
      described_class.new(max_payload: 300_000).add(outbox_record("larger", body: "x" * 262_145))
      described_class.new(max_payload: nil).add(outbox_record("largest", body: "x" * 700_000))

      expect(rows.map { |row| row["id"] }).to match_array %w[small larger largest]
    end
  end

  it "names a limit that is none when it is built" do
    expect { described_class.new(max_payload: 0) }.to raise_error(ArgumentError, /max_payload: must be bytes/)
    expect { described_class.new(max_payload: "1 MB") }.to raise_error(ArgumentError, /max_payload/)
    expect(described_class.new.max_payload).to eq 262_144
  end

  describe AceMQ::AMQP::Patterns::LeaseToken do
    it "fits the column whatever the host is called, and is different each time" do
      allow(Socket).to receive(:gethostname).and_return("ein-sehr-langer-name:mit_ü.und.noch.viel.mehr.davon.example.com")
      described_class.instance_variable_set(:@host, nil)
      tokens = Array.new(100) { described_class.generate }

      expect(tokens.uniq.size).to eq 100
      expect(tokens).to all(satisfy { |token| token.size <= 64 && token.ascii_only? })
      holder, since = described_class.read(tokens.first)
      expect(holder).to match(/\Aein-sehr-lange[\w.-]*, process #{Process.pid}\z/)
      expect(since).to be_within(5).of(Time.now)
    ensure
      described_class.instance_variable_set(:@host, nil)
    end

    it "leaves what others have written as it is" do
      uuid = "0192f0c1-2345-7abc-8def-0123456789ab"

      expect([described_class.read(uuid), described_class.read("x:y")]).to eq [[uuid, nil], ["x:y", nil]]
    end
  end
end
