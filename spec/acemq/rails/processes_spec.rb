# frozen_string_literal: true

# Case 24, its second part: the processes that a Rails application is loaded in, and what starts in them.
RSpec.describe "Processes of a Rails application whose initializer starts a relay" do
  let(:broker_port) { AceMQ::SpecSupport::CountingPort.new.tap { |port| cleanups << -> { port.close } } }
  let(:database_port) { AceMQ::SpecSupport::CountingPort.new.tap { |port| cleanups << -> { port.close } } }
  let(:sqlite) { AceMQ::SpecSupport::RailsApplication::SQLITE }
  let(:unreachable) { { adapter: "postgresql", host: "127.0.0.1", port: database_port.port, database: "shop" } }

  def application(database: sqlite, **options)
    rails_application(database: database, **options).tap do |app|
      app.write("config/acemq.yml", "production: {url: 'amqp://127.0.0.1:#{broker_port.port}', connect_on_boot: true}")
      app.write("config/initializers/acemq.rb", <<~RUBY)
        RELAY = AceMQ::AMQP::Patterns::OutboxRelay.new(
          AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new, interval: 0.1
        ).start
        at_exit { puts "at the end: \#{[RELAY.running?, Thread.list.map(&:name).grep(/acemq/)]}" }
      RUBY
    end
  end

  # As another process of the application's would.
  def insert(app, id, routing_key)
    file = File.join(app.root, "db/shop.sqlite3")
    Class.new(ActiveRecord::Base) { self.abstract_class = true }.then do |session|
      stub_const("Beside", session)
      session.establish_connection(adapter: "sqlite3", database: file, timeout: 5_000)
      session.connection.execute(<<~SQL)
        INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at)
        VALUES ('#{id}', '', '#{routing_key}', '{}', 'utf-8', 'application/json', '{}', '#{Time.now.utc.strftime("%F %T.%6N")}')
      SQL
    ensure
      session.remove_connection
    end
  end

  def expect_nothing_started(app, output)
    expect(output).to include "at the end: [false, []]"
    expect(broker_port.visits).to eq 0
    expect(app.read("log/production.log").lines.grep(/acemq: /)).to match [/the outbox relay does not start here: #{what}.*start_relays/]
  end

  describe "rails runner" do
    let(:what) { "rails runner serves nothing" }

    it "starts nothing and dials nothing, and a line says so" do
      app = application
      output = app.run!("bin/rails", "runner", "puts 2 * 21")

      expect(output).to start_with "42"
      expect_nothing_started(app, output)
    end
  end

  describe "rails db:migrate" do
    let(:what) { "a rake task \\(db:migrate\\) serves nothing" }

    it "starts nothing over the tables that it is about to make" do
      app = application(installed: true)
      File.delete(File.join(app.root, "db/shop.sqlite3"))
      output = app.run!("bin/rails", "db:migrate")

      expect(output).to include "CreateAcemqOutbox: migrated"
      expect_nothing_started(app, output)
    end
  end

  describe "rails assets:precompile" do
    let(:what) { "a rake task \\(assets:precompile\\) serves nothing" }

    it "needs neither a broker nor a database" do
      app = application(database: unreachable)
      # As the assets' libraries have it.
      app.write("lib/tasks/assets.rake", "task('assets:precompile' => :environment) { puts 'compiled' }")
      output = app.run!("bin/rails", "assets:precompile")

      expect(output).to start_with "compiled"
      expect_nothing_started(app, output)
      expect(database_port.visits).to eq 0
    end
  end

  describe "rails console" do
    let(:what) { "the console serves nothing" }

    it "starts nothing unasked, and what it is asked for" do
      app = application
      app.write("typed", <<~'RUBY')
        puts "running: #{RELAY.running?}"
        AceMQ::Rails.start_relays
        puts "running: #{RELAY.running?}"
        RELAY.close
      RUBY
      app.write("console.rb", "$stdin.reopen('typed')\nARGV.replace(['console'])\nload 'bin/rails'\n")
      output = app.run!("console.rb")

      expect(output).to include("running: false", "running: true")
      expect(app.read("log/production.log")).to match(/the outbox relay does not start here: the console serves nothing/)
    end
  end

  describe "acemq-consumer" do
    it "starts the relay, which says once that its table is missing, and works when it is there", :broker do
      queue = new_queue(amqp = open_connection)
      app = application(installed: true)
      File.delete(File.join(app.root, "db/shop.sqlite3"))
      app.write("config/acemq.yml", "production: {url: '#{broker.url}'}")
      app.write("app/consumers/shop_consumer.rb", "class ShopConsumer < AceMQ::Rails::Consumer\n queue '#{queue}.none'\nend")
      new_queue(amqp, "#{queue}.none")
      process = app.start(app.executable("acemq-consumer"))
      eventually(30) { expect(process.output).to match(/table acemq_outbox .*does not exist.*db:migrate/) }
      app.run!("bin/rails", "db:migrate")
      insert(app, "m-1", queue)

      eventually { expect(amqp.message_count(queue)).to eq 1 }
      expect(process.signal("TERM").wait).to be_success
      expect(process.output.scan("does not exist").size).to eq 1
      expect(process.output).to include "at the end: [false, []]"
    ensure
      %w[dlq parked].each { |suffix| amqp&.delete_queue("#{queue}.none.#{suffix}") }
    end
  end

  describe "a process that starts a relay itself" do
    # A store such as applications write, whose reads go through ActiveRecord's query cache.
    let(:reading_store) { <<~RUBY }
      class ReadingStore
        def add(record) = nil
        def mark_published(id) = OutboxMessage.where(id: id).update_all(published_at: Time.now.utc)

        def pending(limit = 0)
          2.times { OutboxMessage.where(published_at: nil).order(:id).to_a }
          OutboxMessage.where(published_at: nil).order(:id).map do |row|
            AceMQ::AMQP::Patterns::OutboxRecord.new(id: row.id, exchange: "", routing_key: "a", body: row.body,
                                                    content_type: "text/plain", headers: {}, created_at: row.created_at)
          end
        end
      end
    RUBY

    it "starts it at once; what another process commits is seen at the next look, and the one connection is shared" do
      app = application(database: sqlite.merge(pool: 1), installed: true)
      app.write("app/models/reading_store.rb", reading_store)
      app.write("serve.rb", <<~RUBY)
        require "acemq/testing"
        # Two threads that look at a model's table for the first time can wait for each other, in Rails itself.
        ActiveRecord::Base.connection_pool.with_connection { OutboxMessage.columns_hash }
        transport = AceMQ::Testing::FakeTransport.new
        relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::AMQP::Connection.new(transport: transport), ReadingStore.new,
                                                       interval: 0.05, on_error: ->(error) { puts error.full_message }).start
        web = Thread.new do
          until transport.published.size == 2
            Rails.application.executor.wrap { OutboxMessage.count }
            sleep 0.01
          end
        end
        $stdout.sync = true
        puts "running: \#{relay.running?}"
        seen = []
        until seen.size == 2
          (transport.published.map(&:message_id) - seen).each { |id| seen << id and puts "published: \#{id}" }
          sleep 0.01
        end
        web.join
        sleep 0.01 until ActiveRecord::Base.connection_pool.stat[:busy].zero?
        relay.close
        puts "finished"
      RUBY
      process = app.start("bin/rails", "runner", "serve.rb")
      eventually(30) { expect(process.output).to include "running: true" }
      %w[one two].each do |id|
        insert(app, id, "a")
        eventually { expect(process.output).to include "published: #{id}" }
      end

      expect(process.wait).to be_success, process.output
      expect(process.output).to include "finished"
      expect(process.output).not_to include "ConnectionTimeoutError"
    end
  end
end
