# frozen_string_literal: true

# A driver's connection is not to be used by two threads at a time.
RSpec.describe AceMQ::AMQP::Patterns::SQLOutboxStore, "on a connection that others use" do
  patterns = AceMQ::AMQP::Patterns

  def thread(&work)
    Thread.new(&work).tap { |thread| thread.report_on_exception = false }
  end

  before { connection { |db| %w[acemq_outbox acemq_idempotency].each { |table| db.drop_table(table, if_exists: true) } } }

  on_each_database(:postgres) do
    { "itself" => ->(driver) { driver }, "by a callable" => ->(driver) { -> { driver } } }.each do |how, given|
      it "takes turns on it with a store that was given it #{how}" do
        driver = connect_raw
        outbox = described_class.new(connection: driver).tap(&:create_schema)
        keys = patterns::SQLIdempotencyStore.new(connection: given.call(driver)).tap(&:create_schema)
        outbox.add(outbox_record("a"))
        done = false
        relaying = thread { outbox.claim(10).settle(unsent: ["a"]) until done }
        100.times { |n| keys.claim("k#{n}") && keys.confirm("k#{n}") }
        done = true
        relaying.join

        expect(keys.size).to eq 100
        expect(outbox.claim(10).records.map(&:id)).to eq ["a"]
      end
    end
  end

  on_each_database(:sqlite) do
    it "has nobody wait for a claim that waits for the file on another one" do
      driver = connect_raw
      store = described_class.new(connection: driver, relay: connect_raw).tap(&:create_schema).check!
      store.add(outbox_record("a"))
      claim = nil
      driver.transaction(:immediate) do
        claim = thread { store.claim(10) }
        eventually { expect(claim.status).to eq "sleep" }
        adding = thread { store.add(outbox_record("b")) }
        expect(adding.join(2)).to be adding
      end

      expect(claim.join(10)).to be claim
      expect(rows.map { |row| row["id"] }).to eq %w[a b]
    end
  end
end
