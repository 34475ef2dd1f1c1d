# frozen_string_literal: true

# Whatever the column of the keys is: different keys are different ones.
RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore, "keys" do
  subject(:store) { described_class.new }

  let(:keys) do
    ["abc", "ABC", "Abc", "äbc", "abc ", " abc", "abc\t", "abc\u00a0", "strasse", "straße", "ａｂｃ", "e\u0301", "\u00e9", "ı", "i", "I",
     "😀", "😁", "a'b", "a\\b", "a\\'b", "a%c", "a_c", "k" * 255, "K" * 255, "k" * 256, "é" * 128, "é" * 255, "é" * 256, "nul\0a", "nul\0b",
     "nula", "\xFF\xFE", "\xFF\xFD", "\xFF".b, "0", "00", "0.0", "-0", "null", "#{"x" * 190}:#{"a" * 64}", "#{"x" * 190}:#{"A" * 64}"]
  end

  def table_with(column)
    connection do |db|
      db.drop_table("acemq_idempotency", if_exists: true)
      db.execute("CREATE TABLE acemq_idempotency (message_id #{column} NOT NULL PRIMARY KEY, state VARCHAR(16) NOT NULL, " \
                 "claimed_by VARCHAR(64), recorded_at #{time} NOT NULL, expires_at #{time} NOT NULL)")
      AceMQ::AMQP::Patterns::Database::TABLES.clear
    end
  end

  def time
    { mariadb: "DATETIME(6)", postgres: "TIMESTAMP", sqlite: "DATETIME" }.fetch(database)
  end

  # By other executions, which hold none of them.
  def others(stores)
    stores.flat_map { |other| Thread.new { keys.map { |key| other.claim(key) } }.value.tally }
  end

  shared_examples "exact keys" do |column|
    it "are told apart in a column #{column}" do
      prepare if respond_to?(:prepare)
      table_with(column)

      expect(keys.map { |key| store.claim(key) }.tally).to eq(claimed: keys.size)
      expect(others(stores)).to all(eq(in_progress: keys.size))
      keys.each { |key| store.confirm(key) }
      expect(others(stores)).to all(eq(duplicate: keys.size))
      expect(keys.map { |key| store.confirmed?(key) }.uniq).to eq [true]
    end
  end

  # ActiveRecord's and the drivers' agree.
  def stores
    return [store] if database == :mariadb

    [store, AceMQ::AMQP::Patterns::SQLIdempotencyStore.new(connection: -> { raw })]
  end

  on_each_database(:mariadb) do
    %w[utf8mb4_general_ci utf8mb4_unicode_ci utf8mb4_bin utf8mb4_nopad_bin latin1_swedish_ci ascii_bin utf8mb3_bin].each do |collation|
      include_examples "exact keys", "VARCHAR(255) CHARACTER SET #{collation[/\A[^_]+/]} COLLATE #{collation}"
    end
    include_examples "exact keys", "VARBINARY(255)"
    include_examples "exact keys", "VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
  end

  on_each_database(:sqlite) do
    ["VARCHAR(255)", "TEXT", "VARCHAR(255) COLLATE NOCASE", "VARCHAR(255) COLLATE RTRIM"].each do |column|
      include_examples "exact keys", column
    end
  end

  on_each_database(:postgres) do
    def prepare
      execute("CREATE EXTENSION IF NOT EXISTS citext")
      execute("CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    end

    ["VARCHAR(255)", "TEXT", "VARCHAR(255) COLLATE \"C\"", "VARCHAR(255) COLLATE loose", "CITEXT"].each do |column|
      include_examples "exact keys", column
    end
  end
end
