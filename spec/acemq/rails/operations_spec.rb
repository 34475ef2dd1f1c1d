# frozen_string_literal: true

# What there is to operate a Rails application with, in one.
RSpec.describe "operating a Rails application", :broker do
  before do
    app.write("config/initializers/acemq.rb", "AceMQ::Rails.config.url = '#{broker.url}'")
    ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: File.join(app.root, "db/shop.sqlite3"), timeout: 5_000)
  end

  after { AceMQ::SpecSupport::Database.disconnect }

  let(:amqp) { open_connection }
  let(:queue) { new_queue(amqp) }
  let(:app) { rails_application(installed: true) }

  def published_by(process)
    put("m-1", to: queue)
    eventually(30) { expect(marked).to eq %w[m-1] }
    expect(ids_in(amqp, queue)).to eq %w[m-1]
    process.signal("TERM")
    expect(process.wait.exitstatus).to eq 0
    process.output
  end

  it "has the tasks of the family's documents, jobs, a probe to mount, and lines in its log" do
    app.write("config/routes.rb", "Rails.application.routes.draw { mount AceMQ::Rails::Probe.new => '/acemq' }")
    put("m-1", to: queue)
    outbox.mark_published("m-1")
    AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new.first_time?("key")
    execute("UPDATE acemq_outbox SET published_at = '2020-01-01 00:00:00'")
    execute("UPDATE acemq_idempotency SET expires_at = '2020-01-01 00:00:00'")
    printed = app.run!("-e", <<~'RUBY')
      require "rake"
      require "./config/environment"
      require "rack/mock"
      Rails.application.load_tasks
      run = lambda do |task, env = {}|
        env.each { |name, value| ENV[name] = value }
        Rake::Task[task].tap(&:reenable).invoke
      rescue SystemExit => e
        puts "exit #{e.status}"
      ensure
        env.each_key { |name| ENV.delete(name) }
      end
      run.call("acemq:purge_outbox", { "OLDER_THAN" => "soon" })
      run.call("acemq:purge_outbox", { "DRY_RUN" => "1" })
      run.call("acemq:purge_outbox", { "OLDER_THAN" => "1d", "DRY_RUN" => "0" })
      run.call("acemq:purge_idempotency")
      p AceMQ::Rails::OutboxHealthCheck.call
      AceMQ::AMQP::Notifications.tell(:blocked, reason: "memory")
      %w[live ready outbox metrics elsewhere].each do |page|
        answer = Rack::MockRequest.new(Rails.application).get("/acemq/#{page}", "HTTP_HOST" => "localhost")
        puts "#{page} #{answer.status} #{answer.body}"
      end
    RUBY

    expect(printed.lines.map(&:chomp)).to include(
      "exit 64", "acemq_outbox: 1 published rows would be removed", "acemq_outbox: 1 published rows removed",
      "acemq_idempotency: 1 expired keys removed", "{:status=>:ok, :dead_letter_count=>0}", start_with("live 200"),
      'ready 200 {"ok":true,"checks":{"outbox acemq_outbox":{"ok":true}}}', start_with("outbox 200"), start_with("metrics 200"),
      'acemq_outbox_pending{outbox="acemq_outbox"} 0', start_with("elsewhere 404")
    )
    expect(app.read("log/production.log")).to include "acemq: the broker has blocked publishing (memory); rows wait"
  end

  it "relays by the task" do
    relay = app.start("-rrake", "-e", "Rake.application.run(['acemq:relay'])")

    expect(published_by(relay)).to include "publishing acemq_outbox"
  end

  it "leaves a task of the application's own alone" do
    app.write("lib/tasks/acemq_relay.rake", <<~RUBY)
      namespace :acemq do
        task(relay: :environment) { puts "the application's own" }
      end
    RUBY

    expect(app.run!("-rrake", "-e", "Rake.application.run(['acemq:relay'])")).to eq "the application's own\n"
  end

  it "finds the application by itself, and runs the relays of its initializers in acemq relay and in no other command" do
    app.write("config/initializers/relay.rb", <<~RUBY)
      RELAY = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new,
                                                     interval: 0.1).start
      at_exit { puts "running: \#{RELAY.running?}" }
    RUBY
    expect(app.run!(app.executable("acemq"), "status")).to include("outbox acemq_outbox", "running: false")

    expect(published_by(app.start(app.executable("acemq"), "relay")).scan(/publishing acemq_outbox,/).size).to eq 1
  end

  it "ends at once when it is told twice, also where the relay is an initializer's and the broker answers nothing" do
    app.write("config/initializers/relay.rb", <<~RUBY)
      require "acemq/testing"
      AceMQ::Rails.config.shutdown_timeout = 60
      transport = AceMQ::Testing::FakeTransport.new.tap { |fake| fake.fault(:delay, seconds: 600) }
      AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport)
      AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new,
                                             interval: 0.1).start
    RUBY
    put("m-1", to: "x")
    process = app.start(app.executable("acemq"), "relay")
    eventually(30) { expect(leased).to eq %w[m-1] }
    process.signal("TERM")
    eventually { expect(process.output).to include "stopping" }

    expect(process.signal("TERM").wait(30).exitstatus).to eq 75
  end
end
