# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::SQLIdempotencyStore do
  include AceMQ::SpecSupport::Keys

  subject(:store) { described_class.new(connection: source) }

  let(:another_store) { described_class.new(connection: source) }

  on_each_driver do
    before do
      connection { |db| db.drop_table(table, if_exists: true) }
      store.create_schema
    end

    include_examples "a store of keys"

    it "makes its table once" do
      store.claim("k")
      store.create_schema

      expect(store.check!.size).to eq 1
      expect(described_class.ddl("my_keys").size).to eq 2
      expect(described_class.ddl("my_keys")).to all(match(/IF NOT EXISTS my_keys/))
    end

    it "uses a table that a Rails application's migration made" do
      make_idempotency(:application)

      store.claim("k")
      expect(elsewhere { store.claim("k") }).to eq :in_progress
      age("k", 301)
      expect(elsewhere { store.claim("k") }).to eq :claimed
    end

    it "shares a table with the ActiveRecord store" do
      of_rails = AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new
      %w[one two].zip([store, of_rails]).each do |key, owner|
        owner.claim(key)
        owner.confirm(key)
      end

      expect([of_rails.claim("one"), store.claim("two")]).to eq %i[duplicate duplicate]
    end

    it "harms no transaction that it is asked in" do
      store.claim("k")
      make_orders
      transaction do |work|
        work.call("INSERT INTO orders (name) VALUES ('before')")
        2.times { store.claim("k") }
        work.call("INSERT INTO orders (name) VALUES ('after')")
      end

      expect(rows("orders", order: "id").map { |row| row["name"] }).to eq %w[before after]
    end
  end

  on_each_database(:sqlite, :postgres) do
    before do
      connection { |db| db.drop_table(table, if_exists: true) }
      store.create_schema
    end

    context "with one connection for all threads" do
      let(:source) { raw }

      it "gives a key to one of them" do
        answers = Array.new(8) { Thread.new { Array.new(20) { |i| store.claim("k#{i}") } } }.map(&:value)

        expect(answers.transpose.map(&:tally)).to all(eq(claimed: 1, in_progress: 7))
      end
    end

    context "with an object of the application's own in between" do
      own_seam = Struct.new(:inner) do
        def run(sql, params)
          result = inner.run(sql, params)
          result.rows.map! { |row| row.each_with_index.to_h { |value, index| ["column#{index}", value] } }
          result
        end

        def placeholder(index) = inner.placeholder(index)
        def constraint_violation?(error) = inner.constraint_violation?(error)
      end

      let(:source) { own_seam.new(AceMQ::AMQP::Patterns::SQL.connect(raw)) }

      it "works by that, even when its rows are hashes" do
        expect([store.claim("k"), store.confirm("k"), elsewhere { store.claim("k") }]).to eq [:claimed, true, :duplicate]
      end
    end
  end

  it "names what is wrong when it is built" do
    expect { described_class.new(connection: -> {}, retention: 0) }.to raise_error(ArgumentError, /retention: must be seconds/)
    expect { described_class.new(connection: -> {}, claim_timeout: -1) }.to raise_error(ArgumentError, /claim_timeout/)
    expect { described_class.new(connection: -> {}, table: "a; DROP TABLE b") }.to raise_error(ArgumentError, /is no table name/)
    expect { described_class.new(connection: Object.new) }.to raise_error(ArgumentError, /Object is no connection of the pg or sqlite3/)
  end
end
