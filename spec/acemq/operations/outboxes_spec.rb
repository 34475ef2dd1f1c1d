# frozen_string_literal: true

require "acemq/operations"
require "acemq/testing"
require "tmpdir"

RSpec.describe AceMQ::Operations::Outboxes do
  around do |example|
    Dir.mktmpdir do |folder|
      AceMQ::SpecSupport::Database.connect(:sqlite)
      @folder = folder
      example.run
    ensure
      AceMQ::SpecSupport::Database.disconnect
    end
  end

  def outboxes(**options)
    described_class.chosen(**options)
  end

  it "is the plain one where nothing says otherwise" do
    expect(outboxes.map { |outbox| [outbox.name, outbox.store.table, outbox.store.max_attempts] })
      .to eq [["acemq_outbox", "acemq_outbox", 10]]
    expect(outboxes(table: "events", max_attempts: 3).map { |outbox| [outbox.name, outbox.store.max_attempts] }).to eq [["events", 3]]
  end

  it "are those whose relays the application's initializers have made, unless one is named" do
    store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(table: "events", max_attempts: 3)
    others = [AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new,
              AceMQ::AMQP::Patterns::InMemoryOutboxStore.new]
    relays = [store, *others].map { |one| AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Testing::FakeTransport.new, one) }
    allow(AceMQ::Rails::Relays).to receive(:kept).and_return(relays)

    expect(outboxes.map(&:name)).to eq ["events", "acemq_outbox #2", "acemq_outbox #3"]
    expect(outboxes.map(&:store).first).to be store
    expect(outboxes(table: "other").map(&:name)).to eq ["other"]
  end

  it "are in the databases of models" do
    stub_const("Shop", Class.new(ActiveRecord::Base) { self.table_name = "shop_outbox" })
    stub_const("Billing", Class.new(ActiveRecord::Base) { self.abstract_class = true })

    expect(outboxes(models: %w[Shop Billing]).map { |outbox| [outbox.name, outbox.store.table] })
      .to eq [["shop_outbox of Shop", "shop_outbox"], ["acemq_outbox of Billing", "acemq_outbox"]]
    expect { outboxes(models: %w[Shpo]) }.to raise_error(AceMQ::AMQP::ConfigurationError, /no class Shpo/)
  end

  it "are in shards, each seen from any thread" do
    databases = %w[one two].to_h { |name| [name, { adapter: "sqlite3", database: File.join(@folder, "#{name}.sqlite3") }] }
    former = ActiveRecord::Base.configurations
    ActiveRecord::Base.configurations = { "default_env" => databases }
    ActiveRecord::Base.connects_to(shards: { default: { writing: :one }, one: { writing: :one }, two: { writing: :two } })
    found = outboxes(shards: %w[one two]).to_a
    %i[one two].each do |shard|
      ActiveRecord::Base.connected_to(role: :writing, shard: shard) do
        AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.create_table(ActiveRecord::Base.connection)
      end
    end
    found.last.store.add(outbox_record("a"))

    expect(found.map(&:name)).to eq ["acemq_outbox of one", "acemq_outbox of two"]
    expect(Thread.new { found.map { |outbox| outbox.store.pending_count } }.value).to eq [0, 1]
    expect(found.last.store.claim(10).records.map(&:id)).to eq ["a"]
    expect { outboxes(shards: %w[one tow]) }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /ActiveRecord::Base has no shard tow: name one .* `connects_to shards:`/)
  ensure
    ActiveRecord::Base.configurations = former
  end
end
