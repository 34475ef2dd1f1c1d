# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # What examples do with a table of keys, and to it.
    module Keys
      def table
        "acemq_idempotency"
      end

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

      # Runs the block in a transaction of the work that comes to nothing.
      def rolled_back
        undone = Class.new(StandardError)
        transaction do
          yield
          raise undone
        end
      rescue undone
        nil
      end

      def expire(key)
        execute("UPDATE #{table} SET expires_at = #{sql_time(-1)} WHERE message_id = '#{key}'")
      end
    end
  end
end

# Needs `store`, `another_store` (another object on the same table), and `transaction`, which yields what runs a
# statement in the transaction of the work.
RSpec.shared_examples "a store of keys" do
  include AceMQ::SpecSupport::Keys

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
      late = lambda do
        transaction do |work|
          work.call("INSERT INTO orders (name) VALUES ('late')")
          store.confirm("k")
        end
      end

      expect(&late).to raise_error(AceMQ::AMQP::Patterns::ClaimLostError)
      expect(rows("orders", order: "id")).to eq []
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

    expect(another_store.confirm("k")).to be true
    expect(elsewhere { store.claim("k") }).to eq :duplicate
  end

  it "confirms again without harm and without writing" do
    store.claim("k")
    store.confirm("k")
    before = key_row("k")

    expect(another_store.confirm("k")).to be true
    expect(key_row("k")).to eq before
  end

  it "confirms with the transaction that does the work" do
    store.claim("k")
    transaction { store.confirm("k") }

    expect(store.confirm("k")).to be true
    expect(store.confirmed?("k")).to be true
  end

  it "gives the key back when that transaction rolls back, and confirms when told to all the same" do
    store.claim("k")
    rolled_back { store.confirm("k") }
    expect(elsewhere { store.claim("k") }).to eq :in_progress

    expect(store.confirm("k")).to be true
    expect(elsewhere { store.claim("k") }).to eq :duplicate
  end

  it "forgets after such a rollback" do
    store.claim("k")
    rolled_back { store.confirm("k") }

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

  it "tells a claim that replaced another one from a first one" do
    %w[fresh expired old done].each { |key| store.claim(key) }
    store.confirm("done")
    expire("expired")
    expire("done")
    age("old", 301)

    taken = elsewhere do
      %w[new expired old done].to_h { |key| [key, [store.claim(key), store.taken_over?(key)]] }
    end
    expect(taken).to eq("new" => [:claimed, false], "expired" => [:claimed, true], "old" => [:claimed, true],
                        "done" => [:claimed, false])
    expect([store.taken_over?("fresh"), store.taken_over?("never seen")]).to eq [false, false]
  end

  describe "a renewal" do
    it "makes a claim as young as a new one, from another thread" do
      store.claim("k")
      age("k", 200)
      expire("k")
      renewal = store.renewal("k")

      expect(elsewhere { renewal.call }).to be true
      expect(elsewhere { store.claim("k") }).to eq :in_progress
      expect(store.confirm("k")).to be true
    end

    it "does nothing for a claim that was lost, given back, or never made" do
      store.claim("k")
      renewal = store.renewal("k")
      age("k", 301)
      elsewhere { store.claim("k") }
      before = key_row("k")

      expect(renewal.call).to be false
      expect(key_row("k")).to eq before
      store.claim("given back")
      renewal = store.renewal("given back")
      store.forget("given back")
      expect(renewal.call).to be false
      expect(store.size).to eq 1
      expect(elsewhere { store.renewal("k") }).to be_nil
    end

    it "leaves a key alone that is being confirmed: its row may be in an open transaction" do
      store.claim("k")
      renewal = store.renewal("k")
      transaction do
        store.confirm("k")
        expect(Timeout.timeout(2) { elsewhere { renewal.call } }).to be :later
      end

      expect(elsewhere { renewal.call }).to be false
      expect(store.confirmed?("k")).to be true
      expect(key_row("k")["state"]).to eq "CONFIRMED"
    end

    it "goes on when the transaction of the confirm was rolled back" do
      store.claim("k")
      renewal = store.renewal("k")
      expect { transaction { store.confirm("k") && raise("the database chose this one of two") } }.to raise_error(/chose/)
      age("k", 200)
      expire("k")

      expect(elsewhere { renewal.call }).to be true
      expect(elsewhere { store.claim("k") }).to eq :in_progress
      expect(store.confirm("k")).to be true
    end
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
end
