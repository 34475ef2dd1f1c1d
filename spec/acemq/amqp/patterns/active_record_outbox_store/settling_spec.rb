# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "settling" do
  subject(:store) { described_class.new(max_attempts: 3) }

  let(:other) { described_class.new(max_attempts: 3) }

  # Seconds since 1970 by the database's clock.
  def clock
    value({ sqlite: "SELECT (julianday('now') - 2440587.5) * 86400", postgres: "SELECT extract(epoch FROM clock_timestamp())",
            mariadb: "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000000" }.fetch(database)).to_f
  end

  def locked_until(id)
    value("SELECT #{{ sqlite: "(julianday(locked_until) - 2440587.5) * 86400", postgres: "extract(epoch FROM locked_until)",
                      mariadb: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', locked_until) / 1000000" }.fetch(database)} " \
          "FROM acemq_outbox WHERE id = '#{id}'").to_f
  end

  # However long the machine takes for it.
  def expect_wait(id, seconds, jitter: 0.2)
    before = clock
    yield
    after = clock

    expect(locked_until(id)).to be_between(before + (seconds * (1 - jitter)) - 0.01, after + seconds + 0.01)
  end

  # The lease of a claim runs out and another relay takes its rows.
  def lose(*ids)
    execute("UPDATE acemq_outbox SET locked_until = #{sql_time(-1)} WHERE id IN (#{ids.map { |id| "'#{id}'" }.join(",")})")
    other.claim(100)
  end

  def free?(id)
    row(id).values_at("locked_by", "locked_until") == [nil, nil]
  end

  on_each_database do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    it "marks what is confirmed, once and for all" do
      add("a", "b")
      settled = store.claim(10).settle(confirmed: %w[a b])

      expect(settled.to_h).to eq(marked: 2, retired: [], lost: 0)
      expect(rows.map { |row| row["published_at"] }).to all(be)
      expect([free?("a"), free?("b")]).to eq [true, true]
      expect([store.pending_count, claimed_ids]).to eq [0, []]
    end

    it "charges a record for its own failure, keeps the reason, and lets it wait about a second, then two" do
      add("a")
      expect_wait("a", 1) do
        expect(store.claim(10).settle(failed: [["a", "boom", false]]).to_h).to eq(marked: 0, retired: [], lost: 0)
      end
      expect(row("a")).to include("attempts" => 1, "last_error" => "boom", "locked_by" => nil)

      expect_wait("a", 2) { store.claim(10, ignore_backoff: true).settle(failed: [["a", "boom", false]]) }
    end

    it "retires a record at the ceiling, or at once when trying again cannot help" do
      add("worn", "broken")
      execute("UPDATE acemq_outbox SET attempts = 2 WHERE id = 'worn'")

      settled = store.claim(10).settle(failed: [["worn", "again", false], ["broken", "unreadable", true]])
      expect(settled.retired).to contain_exactly("worn", "broken")
      expect(rows.map { |row| row["attempts"] }).to eq [3, 3]
      expect([free?("worn"), free?("broken"), store.pending_count]).to eq [true, true, 0]
      expect(store.retired.map { |record| [record.id, record.error] })
        .to eq [%w[worn again], %w[broken unreadable]]
    end

    it "holds a destination without ever retiring its head, waiting longer each time" do
      add("head")
      [[1, 1], [2, 2], [4, 2], [4, 2]].each do |seconds, attempts|
        claim = store.claim(1, ignore_backoff: true)
        expect_wait("head", seconds) do
          expect(claim.settle(held: [["head", "no queue is bound"]]).retired).to eq []
        end
        expect(row("head")["attempts"]).to eq attempts
      end

      expect(row("head")["last_error"]).to eq "no queue is bound"
      expect(store.pending_count).to eq 1
    end

    it "gives unsent records back uncharged" do
      add("a", "b")
      store.claim(10).settle(unsent: %w[a b])

      expect(rows.map { |row| row["attempts"] }).to eq [0, 0]
      expect(claimed_ids(on: other)).to eq %w[a b]
    end

    it "settles a mixed batch in one go" do
      allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds).and_return(60)
      add("confirmed", "held", "follower", "failed")
      settled = store.claim(10).settle(confirmed: ["confirmed"], held: [%w[held x]], failed: [["failed", "y", false]],
                                       unsent: ["follower"])

      expect(settled.to_h).to eq(marked: 1, retired: [], lost: 0)
      expect(store.held).to eq(%w[shop order.placed] => 2)
      expect(claimed_ids(on: other)).to eq []
    end

    describe "after the lease was lost" do
      it "still marks what the broker has, and says that the lease was lost" do
        add("a", "b")
        claim = store.claim(10)
        claim.settle(confirmed: ["b"])
        add("b2")
        lose("a")

        expect(claim.settle(confirmed: ["a"]).to_h).to eq(marked: 1, retired: [], lost: 1)
        expect(row("a")).to include("published_at" => be, "locked_by" => nil)
      end

      it "changes nothing else, and counts what it could not change" do
        add("a", "b", "c", "d")
        claim = store.claim(10)
        lose("a", "b", "c", "d")
        before = rows

        settled = claim.settle(failed: [["a", "x", false], ["b", "x", true]], held: [%w[c x]], unsent: ["d"])
        expect(settled.to_h).to eq(marked: 0, retired: [], lost: 4)
        expect(rows).to eq before
        expect(claim.renew).to eq 0
      end

      it "does not count a row twice that the new holder has marked" do
        add("a")
        claim = store.claim(10)
        execute("UPDATE acemq_outbox SET locked_until = #{sql_time(-1)}")
        other.claim(1).settle(confirmed: ["a"])

        expect(claim.settle(confirmed: ["a"]).to_h).to eq(marked: 0, retired: [], lost: 1)
      end
    end

    it "renews the lease of what is not settled yet" do
      add("a", "b", "c")
      claim = described_class.new(lease: 5).claim(10)
      execute("UPDATE acemq_outbox SET locked_until = #{sql_time(0.5)}")
      claim.settle(confirmed: ["a"], unsent: ["c"])

      expect_wait("b", 5, jitter: 0) { expect(claim.renew).to eq 1 }
      expect(free?("c")).to be true
    end

    it "handles more rows than one statement takes" do
      ids = Array.new(1_100) { |i| format("%04d", i) }
      ActiveRecord::Base.transaction { add(*ids) }
      claim = store.claim(1_100)

      expect(claim.records.map(&:id)).to eq ids
      expect(claim.renew).to eq 1_100
      expect(claim.settle(confirmed: ids.first(600), unsent: ids.last(500)).to_h).to eq(marked: 600, retired: [], lost: 0)
      expect(store.pending_count).to eq 500
    end

    # Case 13.
    describe "reasons" do
      unreadable = Class.new(StandardError) { def message = raise("no message") }

      {
        "bytes that are no UTF-8" => ["caf\xE9 down".b, "caf? down"],
        "5,000 characters" => ["ü" * 5_000, "#{"ü" * 997}..."],
        "a frozen text" => %w[frozen frozen],
        "nothing" => [nil, "(no reason given)"],
        "an exception" => [ArgumentError.new("oh"), "ArgumentError: oh"],
        "an exception without a readable message" => [unreadable.new, /its message cannot be read/],
        "a NUL" => ["a\0b", "ab"],
        "another encoding" => ["gr\xFC\xDFe".dup.force_encoding("ISO-8859-1"), "grüße"],
        "an object" => [42, "42"]
      }.each do |what, (reason, kept)|
        it "are kept readable, and the record is given back, with #{what}" do
          add("a")
          store.claim(1).settle(failed: [["a", reason, false]])
          expect(row("a")).to include("attempts" => 1, "last_error" => match(kept), "locked_by" => nil)

          store.mark_failed("a", reason)
          expect(row("a")).to include("attempts" => 2, "last_error" => match(kept), "locked_by" => nil, "locked_until" => nil)
        end
      end
    end

    describe "for a relay that knows nothing of claims" do
      it "leases what it gives out" do
        add("a", "b", "c")

        expect(store.pending(2).map(&:id)).to eq %w[a b]
        expect(other.pending.map(&:id)).to eq []
      end

      it "marks by id, however often" do
        add("a", "b")
        store.pending

        expect(store.mark_published("a")).to eq 1
        expect(store.mark_published(%w[a b unknown])).to eq 1
        expect(store.mark_published([])).to eq 0
      end

      it "counts a failure and gives the record back at once" do
        add("a")
        store.pending
        expect(store.mark_failed("a", "boom")).to be_nil

        expect(store.pending.map { |record| [record.id, record.attempts] }).to eq [["a", 1]]
      end
    end
  end
end
