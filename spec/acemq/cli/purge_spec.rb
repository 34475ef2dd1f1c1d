# frozen_string_literal: true

require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq purge" do
  on_each_database do |name|
    before(:context) do
      make_outbox
      make_idempotency
    end

    before do
      empty("acemq_outbox", "acemq_idempotency")
      without_broker # which it does not need
      add("old", "older", "new", "retired", "pending")
      store.claim(10).settle(confirmed: %w[old older new], failed: [["retired", "no", true]], unsent: ["pending"])
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-9 * 86_400)} WHERE id IN ('old', 'older')")
      keys.first_time?("expired")
      execute("UPDATE acemq_idempotency SET expires_at = #{sql_time(-5)}")
      keys.first_time?("fresh")
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }
    let(:keys) { AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new }

    def left
      [rows.map { |row| row["id"] }.sort, rows("acemq_idempotency", order: "message_id").map { |row| row["message_id"] }]
    end

    it "removes what was published long ago, and keys past their retention, in small statements" do
      expect(acemq("purge", "--batch", "1", "--pause", "0.001"))
        .to have_attributes(code: 0, out: "acemq_outbox: 2 published rows removed\nacemq_idempotency: 1 expired keys removed\n")
      expect(left).to eq [%w[new pending retired], ["fresh"]]
    end

    it "keeps what it is told to keep" do
      acemq("purge", "--older-than", "10d", "--only", "outbox")
      expect(left).to eq [%w[new old older pending retired], %w[expired fresh]]
      acemq("purge", "--older-than", "0s", "--only", "outbox")
      expect(left.first).to eq %w[pending retired]
      acemq("purge", "--only", "idempotency")
      expect(left.last).to eq ["fresh"]
    end

    it "only counts with --dry-run" do
      run = acemq("purge", "--dry-run")

      expect(run.out).to eq "acemq_outbox: 2 published rows would be removed\nacemq_idempotency: 1 expired keys would be removed\n"
      expect(left).to eq [%w[new old older pending retired], %w[expired fresh]]
      expect(acemq("purge", "--dry-run", "--json").json).to eq(dry_run: true, removed: { acemq_outbox: 2, acemq_idempotency: 1 })
    end

    it "says it to programs" do
      expect(acemq("purge", "--json").json).to eq(dry_run: false, removed: { acemq_outbox: 2, acemq_idempotency: 1 })
    end

    it "does without a table of keys, unless it is told of one" do
      connection { |db| db.drop_table(:acemq_idempotency) }
      AceMQ::AMQP::Patterns::Database::TABLES.clear
      expect(acemq("purge")).to have_attributes(code: 0, out: "acemq_outbox: 2 published rows removed\n")
      expect(acemq("purge", "--only", "idempotency")).to have_attributes(code: 78, err: /acemq_idempotency .* does not exist/)
    ensure
      make_idempotency
    end

    it "says to programs that it was interrupted" do
      allow_any_instance_of(AceMQ::Operations::Purge).to receive(:idempotency).and_raise(Interrupt)

      expect(acemq("purge", "--json")).to have_attributes(code: 130, json: { error: "interrupted", exit: 130 })
      expect(left.first).to eq %w[new pending retired]
    end

    it "ends with 64 for a time that is none" do
      expect(acemq("purge", "--older-than", "soon")).to have_attributes(code: 64, err: /--older-than must be a time such as/)
    end

    it "ends with 78 without its table" do
      expect(acemq("purge", "--table", "acemq_nowhere").code).to eq 78
    end

    next if name == :sqlite

    it "ends with 69 without a database" do
      expect(without_database { acemq("purge", "--json") }).to have_attributes(code: 69, json: include(exit: 69))
    end
  end
end
