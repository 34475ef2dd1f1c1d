# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "operating" do
  subject(:store) { described_class.new }

  on_each_database do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    def retire(*ids)
      store.claim(100).settle(failed: ids.map { |id| [id, "broken #{id}", true] })
    end

    it "counts what is still to be published, and not what is retired" do
      add("a", "b", "c", "d")
      store.mark_published("a")
      expect(store.pending_count).to eq 3
      retire("b")

      expect([store.pending_count, store.retired_count]).to eq [2, 1]
    end

    it "knows the age of the oldest one still to be published" do
      expect(store.oldest_pending_age).to be_nil
      add("retired", created_at: Time.now - 500)
      retire("retired")
      add("old", created_at: Time.now - 100)
      add("new", routing_key: "a")

      expect(store.oldest_pending_age).to be_between(99.99, 110) # SQLite's clock has milliseconds
    end

    it "knows no age below 0, whatever the clock of who wrote it" do
      add("ahead", created_at: Time.now + 30)

      expect(store.oldest_pending_age).to eq 0
    end

    it "lists what is retired with the reason, whatever its body" do
      add("large", body: "\xFF" * 100_000)
      add("small")
      retire("large", "small")

      expect(store.retired.map { |record| [record.id, record.error, record.body.bytesize] })
        .to eq [["large", "broken large", 100_000], ["small", "broken small", 2]]
      expect(store.retired(1).map(&:id)).to eq ["large"]
    end

    it "brings back what is retired: all, or the ones named" do
      add("a", "b", "c")
      retire("a", "b", "c")

      expect(store.retry!("b")).to eq 1
      expect(claimed_ids).to eq ["b"]
      expect(store.retry!(%w[b unknown])).to eq 0
      expect(store.retry!).to eq 2
      expect(rows.map { |row| row["attempts"] }).to eq [0, 0, 0]
      expect(store.retry!).to eq 0
    end

    it "counts the rows in backoff by destination, and no leases" do
      allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds).and_return(60)
      add("a", "b", routing_key: "one")
      add("c", routing_key: "two")
      claim = store.claim(100)
      expect(store.held).to eq({})
      claim.settle(held: [%w[a x]], unsent: ["b"])

      expect(store.held).to eq(%w[shop one] => 1)
    end

    it "purges what was published long enough ago, in portions" do
      ids = Array.new(12) { |i| format("%02d", i) }
      add(*ids)
      store.mark_published(ids.first(11))
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-3600)} WHERE id < '10'")

      expect(store.purge_published(7200)).to eq 0
      expect(store.purge_published(1800, batch: 3)).to eq 10
      expect(rows.map { |row| row["id"] }).to eq %w[10 11]
      expect(store.purge_published(0)).to eq 1
      expect(rows.map { |row| row["id"] }).to eq %w[11]
    end

    it "takes ActiveSupport's durations" do
      add("a")
      durable = described_class.new(lease: 1.minute)
      expect(durable.claim(1).lease).to eq 60
      durable.mark_published("a")

      expect(durable.purge_published(7.days)).to eq 0
    end

    it "is complete" do
      expect(store.check!).to be store
    end

    it "takes the connection and the table of a model" do
      make_outbox(:ours, name: "events_outbox")
      model = Class.new(ActiveRecord::Base) { self.table_name = "events_outbox" }
      of_model = described_class.new(model: model)
      of_model.add(outbox_record("a"))

      expect(of_model.table).to eq "events_outbox"
      expect([of_model.pending_count, store.pending_count]).to eq [1, 0]
      expect(described_class.new(table: "events_outbox").claim(1).records.map(&:id)).to eq ["a"]
    end

    it "takes the connection alone of a class that has no table" do
      abstract = Class.new(ActiveRecord::Base) { self.abstract_class = true }

      [abstract, ActiveRecord::Base].each do |model|
        expect(described_class.new(model: model).table).to eq "acemq_outbox"
        expect(described_class.new(model: model).pending_count).to eq 0
      end
    end

    describe "without its table" do
      let(:lost) { described_class.new(table: "acemq_outbux") }

      it "says which one, where, and what to run" do
        message = /table acemq_outbux in the \w+ database ".+" does not exist: .*acemq:install.*db:migrate/

        expect { lost.check! }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
        expect { lost.add(outbox_record) }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
        expect { lost.claim(1) }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
      end

      it "leaves the caller's transaction usable" do
        ActiveRecord::Base.transaction do
          expect { lost.add(outbox_record) }.to raise_error(AceMQ::AMQP::ConfigurationError)
          store.add(outbox_record("a"))
        end

        expect(claimed_ids).to eq ["a"]
      end

      it "works as soon as it is there" do
        expect { lost.check! }.to raise_error(AceMQ::AMQP::ConfigurationError)
        make_outbox(:ours, name: "acemq_outbux")

        expect(lost.check!).to be lost
        connection { |db| db.drop_table("acemq_outbux") }
        expect { lost.claim(1) }.to raise_error(ActiveRecord::StatementInvalid)
        expect { lost.claim(1) }.to raise_error(AceMQ::AMQP::ConfigurationError, /does not exist/)
      end
    end

    it "names a column that is missing" do
      connection do |db|
        db.create_table(:half_outbox, id: :string, limit: 64, force: true) { |t| t.string :exchange_name }
      end

      expect { described_class.new(table: "half_outbox").check! }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /half_outbox .* has no column routing_key, body,/)
    end

    it "needs the id to be the primary key" do
      connection do |db|
        db.create_table(:keyless_outbox, force: true) do |t|
          (AceMQ::AMQP::Patterns::OutboxTable::COLUMNS - ["id"]).each { |column| t.string column }
        end
        db.rename_column(:keyless_outbox, :id, :number)
        db.add_column(:keyless_outbox, :id, :string)
      end

      expect { described_class.new(table: "keyless_outbox").check! }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /must have id as its primary key/)
    end
  end

  it "names what is wrong when it is built" do
    expect { described_class.new(lease: 0) }.to raise_error(ArgumentError, /lease: must be seconds above 0, not 0/)
    expect { described_class.new(lease: "30") }.to raise_error(ArgumentError, /lease/)
    expect { described_class.new(max_attempts: 0) }.to raise_error(ArgumentError, /max_attempts/)
    expect { described_class.new(max_attempts: 2.5) }.to raise_error(ArgumentError, /max_attempts/)
    expect { described_class.new(table: "a; DROP TABLE b") }.to raise_error(ArgumentError, /is no table name/)
    expect { described_class.new(model: String) }.to raise_error(ArgumentError, /model: must be an ActiveRecord class/)
    expect { described_class.new(tabel: "x") }.to raise_error(ArgumentError, /unknown keyword: :tabel/)
  end

  it "touches no database when it is built" do
    expect { described_class.new }.not_to raise_error
  end
end
