# frozen_string_literal: true

# Roles and shards, in a process of its own, because they are set up for all of ActiveRecord.
RSpec.describe "An application with several databases" do
  let(:databases) do
    { primary: "one", replica: "one", second: "two" }
      .to_h { |name, file| [name, { adapter: "sqlite3", database: "db/#{file}.sqlite3", replica: name == :replica }] }
  end

  let(:app) do
    databases[:second][:migrations_paths] = "db/second_migrate"
    rails_application(database: databases).tap do |app|
      app.write("app/models/application_record.rb", <<~RUBY)
        class ApplicationRecord < ActiveRecord::Base
          self.abstract_class = true
          connects_to shards: { default: { writing: :primary, reading: :replica }, second: { writing: :second, reading: :second } }
        end
      RUBY
      app.write("lib/shop.rb", setting)
    end
  end

  let(:setting) { <<~RUBY }
    require "acemq/testing"
    Store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
    TRANSPORT = AceMQ::Testing::FakeTransport.new
    CONNECTION = AceMQ::AMQP::Connection.new(transport: TRANSPORT)
    ApplicationRecord.connection # loads it

    def on(**where, &block) = ActiveRecord::Base.connected_to(**where, &block)
    def relay(store, **options) = AceMQ::AMQP::Patterns::OutboxRelay.new(CONNECTION, store, **options)
    def put(store, id) = store.add(AceMQ::AMQP::Patterns.record(CONNECTION, {}, to: "a", id: id))
    def published = TRANSPORT.published.map(&:message_id)
    %i[default second].each { |shard| on(role: :writing, shard: shard) { Store.create_table(ActiveRecord::Base.connection) } }
  RUBY

  def script(text)
    app.write("script.rb", "require_relative 'lib/shop'\n#{text}")
    app.run!("bin/rails", "runner", "script.rb").lines.map(&:chomp)
  end

  it "refuses to add where only reading is meant, relays whatever the role, and each shard by itself" do
    expect(script(<<~RUBY)).to eq [
      store = Store.new
      put(store, "1")
      begin
        on(role: :reading) { put(store, "2") }
      rescue ActiveRecord::ReadOnlyError => e
        puts e.message
      end
      on(role: :reading) { puts relay(store).sweep }

      second = Store.new(shard: :second)
      put(second, "3")
      puts store.pending_count, second.pending_count
      puts on(role: :writing, shard: :second) { Store.new.pending_count }
      threads = on(role: :reading) { [relay(store, interval: 0.05), relay(second, interval: 0.05)].each(&:start) }
      put(store, "4")
      sleep 0.01 until published.size == 3
      threads.each(&:close)
      puts published.sort.inspect, store.pending_count + second.pending_count
    RUBY
      "acemq_outbox is written under the role :reading, which only reads: write it where the work is done, under :writing",
      "1", "0", "1", "1", '["1", "3", "4"]', "0"
    ]
  end

  it "gets migrations and models for the database that the generator is told" do
    app.run!("bin/rails", "generate", "acemq:install", "--database", "second", "--quiet")

    expect(Dir[File.join(app.root, "db/second_migrate/*.rb")].size).to eq 2
    expect(app.read("app/models/outbox_message.rb")).to include "class OutboxMessage < SecondRecord"
  end
end
