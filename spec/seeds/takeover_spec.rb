# frozen_string_literal: true

require_relative "application"

# An application with a hand-written outbox changes its store for ours: the table and its rows stay.
RSpec.describe "A table made by hand, with rows of a hand-written store" do
  before(:context) { @update = generate("update") }
  after(:context) { FileUtils.rm_rf(@update) }

  on_each_database do
    before do
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
      forget_tables
      AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport)
      5.times { |n| Order.place!({ customer: "c#{n}" }, outbox: theirs) }
      OutboxMessage.order(:created_at, :id).first.tap { |row| theirs.mark_published(row.id) }
      theirs.mark_failed(OutboxMessage.find_by(published_at: nil).id, "declined")
      %w[handled begun].each { |key| keys.first_time?(key) }
      keys.confirm("handled")
    end

    after do
      AceMQ::Rails.connection = nil
      HandwrittenApplication.drop
      forget_tables
    end

    let(:transport) { FakeTransport.new }
    let(:theirs) { ActiveRecordOutboxStore.new }
    let(:keys) { ActiveRecordIdempotencyStore.new }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }
    let(:key_store) { AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: 300) }

    # What stores have read of the tables that were there before.
    def forget_tables
      store
      AceMQ::AMQP::Patterns::Database::TABLES.clear
    end

    def everything
      # As text: what a type is read as may change, and is not the row's.
      [rows, rows("acemq_idempotency", order: "message_id")].map do |table|
        table.map { |row| row.transform_values { |value| value.respond_to?(:strftime) ? value.strftime("%F %T.%6N") : value } }
      end
    end

    def index_names(table)
      connection { |db| db.indexes(table).map(&:name) }
    end

    it "is taken over without touching a row: what was published stays so, the rest goes out, keys keep their meaning" do
      before = everything
      expect([store.check!.pending_count, key_store.check!.size]).to eq [4, 2]
      expect(everything).to eq before

      waiting = before.first.reject { |row| row["published_at"] }.map { |row| row["id"] }
      expect(AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store).sweep).to eq 4
      expect(transport.published.map(&:message_id)).to match_array waiting
      expect(%w[handled begun new].map { |key| key_store.claim(key) }).to eq %i[duplicate in_progress claimed]
    end

    it "gets it, too, where there is only an outbox" do
      connection { |db| db.drop_table("acemq_idempotency") }
      migrations(@update).each { |migration| migrate(migration, :up) }

      expect(store).to be_indexed
    ensure
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
    end

    it "gets by acemq:update what a table has that is made today, and keeps every row" do
      before = everything
      2.times { migrations(@update).each { |migration| migrate(migration, :up) } }

      expect(everything).to eq before
      expect(store).to be_indexed
      expect(index_names("acemq_outbox")).to include("acemq_outbox_destination", "acemq_outbox_pending")
      expect(index_names("acemq_idempotency")).to eq ["acemq_idempotency_expiry"]
      expect(AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store).sweep).to eq 4
      expect(theirs.pending_count).to eq 0
    end
  end

  on_each_database(:mariadb) do
    after { %w[acemq_outbox acemq_idempotency].each { |table| connection { |db| db.drop_table(table, if_exists: true) } } }

    it "gets microseconds, room for large bodies, and ids that differ by their bytes" do
      connection { |db| db.execute("ALTER DATABASE CHARACTER SET utf8mb3") }
      make_outbox(:application)
      make_idempotency(:application)
      migrations(@update).each { |migration| migrate(migration, :up) }
      columns = connection { |db| db.columns("acemq_outbox") + db.columns("acemq_idempotency") }

      expect(columns.select { |column| column.type == :datetime }.map(&:precision)).to all(eq 6)
      expect(columns.filter_map(&:collation)).to all(eq "utf8mb4_bin")
      expect(columns.select { |column| %w[body headers].include?(column.name) }.map(&:limit)).to all(eq 16_777_215)
      expect(columns.select { |column| %w[created_at body recorded_at].include?(column.name) }.map(&:null)).to all(be false)
    ensure
      connection { |db| db.execute("ALTER DATABASE CHARACTER SET utf8mb4") }
    end
  end

  on_each_database(:postgres) do
    before { make_outbox(:application) }

    it "is updated while writers go on, although the update itself has to wait for an older transaction" do
      update = nil
      stub_const("Older", Class.new(ActiveRecord::Base) { self.abstract_class = true })
      Older.establish_connection(AceMQ::SpecSupport::Database.config(:postgres))
      Older.transaction do
        Older.connection.execute("INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, " \
                                 "headers, created_at) VALUES ('o', '', 'a', '', 'utf-8', '', '{}', now())")
        update = Thread.new { connection { |db| AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.update_table(db) } }
        eventually { expect(value("SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'CREATE%INDEX%CONCURRENTLY%'").to_i).to eq 1 }
        put("w", to: "a")
      end
      update.value

      expect(outbox).to be_indexed
      expect(outbox.pending_count).to eq 2
    ensure
      update&.join
      Older.remove_connection
    end

    it "gets more digits where its times had few" do
      connection { |db| db.execute("ALTER TABLE acemq_outbox ALTER COLUMN locked_until TYPE timestamp(0) without time zone") }
      connection { |db| AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.update_table(db) }

      expect(connection { |db| db.columns("acemq_outbox").find { |column| column.name == "locked_until" } }.precision).to eq 6
    end
  end
end
