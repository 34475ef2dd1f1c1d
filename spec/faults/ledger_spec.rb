# frozen_string_literal: true

require_relative "chaos/ledger"
require_relative "chaos/waiting"

RSpec.describe AceMQ::Chaos::Ledger do
  let(:lanes) { { %w[e good] => :good, %w[e late] => :late, %w[e full] => :full } }
  let(:ordering) { :destination }
  let(:ledger) { described_class.new(lanes: lanes, max_attempts: 10, ordering: ordering) }
  let(:work) { {} }
  let(:rows) { {} }

  # A message that was committed and published once.
  def delivered(id, lane = "good", n: work.size + 1, **members)
    committed(id, lane, n: n, published: true, **members)
    ledger.take([id])
  end

  def committed(id, lane = "good", n: work.size + 1, attempts: 0, published: false)
    work[id] = described_class::Work.new(["e", lane], n)
    rows[id] = described_class::Row.new(id: id, lane: ["e", lane], attempts: attempts, published: published)
  end

  def judgement(acknowledged: work.keys, poison: [], repeats_allowed: 0)
    @judgement ||= ledger.judge(work: work, acknowledged: acknowledged, rows: rows.values, poison: poison,
                                repeats_allowed: repeats_allowed)
  end

  it "has nothing to say of messages that are committed, marked and in a queue, once and in order" do
    delivered("a")
    delivered("b", "late", attempts: 4)
    delivered("c", "full", attempts: 9)
    ledger.check_marked(%w[a b c])

    expect(judgement).to be_ok
    expect(judgement.complaints).to be_empty
    expect(judgement.numbers).to include(committed: 3, published: 3, repeated: 0, lost: 0)
  end

  it "finds a message that is marked and in no queue" do
    committed("a", published: true)
    ledger.check_marked(%w[a])

    expect(judgement.absent).to eq %w[a]
    expect(judgement.complaints).to eq ["1 marked published, in no queue: a"]
  end

  it "does not ask for marks that came after the queues were looked at" do
    ledger.check_marked([])
    delivered("a")

    expect(judgement).to be_ok
  end

  it "finds a mark that was ahead of its message, even if the message comes later" do
    ledger.check_marked(%w[a])
    delivered("a")

    expect(judgement.absent).to eq %w[a]
  end

  it "finds a message that never reached a queue" do
    committed("a")

    expect(judgement.undelivered).to eq %w[a]
    expect(judgement).not_to be_ok
  end

  it "finds work whose message is in no table, and a commit that is no more" do
    delivered("a")
    rows.delete("a")
    judged = judgement(acknowledged: %w[a b])

    expect(judged.lost).to contain_exactly("a", "b")
  end

  it "finds a message of a transaction that rolled back" do
    ledger.take(%w[ghost])

    expect(judgement.phantoms).to eq %w[ghost]
    expect(judgement.numbers).to include(lost: 1)
  end

  it "finds a message that arrived and was never marked" do
    committed("a")
    ledger.take(%w[a])

    expect(judgement.unmarked).to eq %w[a]
  end

  it "counts repetitions against what is allowed" do
    delivered("a")
    ledger.take(%w[a a])
    expect(ledger.judge(work: work, acknowledged: [], rows: rows.values, poison: [], repeats_allowed: 2)).to be_ok

    expect(judgement(repeats_allowed: 1).complaints).to eq ["2 repeated, 1 allowed"]
  end

  describe "blame" do
    it "is wrong in a lane that is good" do
      delivered("a", attempts: 1)

      expect(judgement.charged).to eq %w[a]
    end

    it "is the head's alone in a lane that cannot be delivered" do
      delivered("a", "late", attempts: 3)
      delivered("b", "late", attempts: 1)

      expect(judgement.charged).to eq %w[b]
    end

    it "never goes to the ceiling for what is the destination's" do
      committed("a", "late", attempts: 10)
      committed("b", "full", attempts: 10)

      expect(judgement.charged).to contain_exactly("a", "b")
    end

    it "retires at once what can never be sent" do
      rows["p"] = described_class::Row.new(id: "p", lane: %w[e good], attempts: 10, published: false)
      rows["q"] = described_class::Row.new(id: "q", lane: %w[e good], attempts: 1, published: false)
      rows["r"] = described_class::Row.new(id: "r", lane: %w[e good], attempts: 0, published: true)

      expect(judgement(poison: %w[p q r]).charged).to eq %w[q r]
    end
  end

  describe "order" do
    it "is that of the first arrivals" do
      %w[a b c].each { |id| committed(id, published: true) }
      ledger.take(%w[a b])
      ledger.take(%w[a b c])

      expect(judgement.disordered).to be_empty
    end

    it "is broken by a message that comes first and was written later" do
      %w[a b c].each { |id| committed(id, published: true) }
      ledger.take(%w[a c b])

      expect(judgement.disordered).to eq %w[b]
    end

    it "is each lane's own, and none where a nack lets others pass" do
      committed("a", n: 1, published: true)
      committed("b", "late", n: 2, published: true)
      %w[d e].each { |id| committed(id, "full", published: true) }
      ledger.take(%w[b a e d])

      expect(judgement.disordered).to be_empty
    end
  end

  describe "of relays without an order" do
    let(:ordering) { :none }

    it "lets each row of a lane that cannot be delivered be charged, and each come at any time" do
      delivered("a", "late", attempts: 3)
      delivered("b", "late", attempts: 1)
      %w[d c].each { |id| committed(id, published: true) }
      ledger.take(%w[c d])

      expect(judgement).to be_ok
    end

    it "lets nobody else be" do
      delivered("a", attempts: 1)
      committed("b", "late", attempts: 10)

      expect(judgement.charged).to eq %w[a b]
    end
  end

  it "passes on what else was seen" do
    judgement.misdeeds = ["the thread was dead"]
    judgement.stuck = %w[a]

    expect(judgement.complaints).to eq ["1 claimable and left waiting: a", "the thread was dead"]
  end
end

RSpec.describe AceMQ::Chaos::Waiting do
  let(:waiting) { described_class.new(5) }

  it "finds what is claimable and left waiting" do
    [0, 3, 6].each { |now| waiting.look([["a", "lane", false]], now) }

    expect(waiting.stuck).to eq %w[a]
  end

  it "does not count the time in which a row or an earlier one of its lane is held" do
    6.times { |now| waiting.look([["a", "lane", true], ["b", "lane", false]], now * 2) }
    waiting.look([["a", "lane", false], ["b", "lane", false]], 12)
    waiting.look([["b", "lane", false]], 16)

    expect(waiting.stuck).to be_empty
  end

  it "knows what else a row waits for" do
    rows = [["a", "lane", true], ["b", "lane", false], ["c", "other", false]]
    stuck = %i[destination strict none].to_h do |ordering|
      waiting = described_class.new(5, ordering: ordering)
      [0, 6].each { |now| waiting.look(rows, now) }
      [ordering, waiting.stuck]
    end

    expect(stuck).to eq(destination: %w[c], strict: [], none: %w[b c])
  end

  it "begins anew after an excuse" do
    waiting.look([["a", "lane", false]], 0)
    waiting.excuse
    waiting.look([["a", "lane", false]], 9)
    waiting.look([["a", "lane", false]], 13)

    expect(waiting.stuck).to be_empty
  end
end
