# frozen_string_literal: true

require "json"
require "net/http"

# What the processes of a web server answer about the relay of an initializer. No broker is needed to see where it runs.
RSpec.describe "Web servers of a Rails application whose initializer starts a relay" do
  # Some of RubyGems' knows Bundler by name, and then Puma asks for all of it.
  served = %w[-rbundler -S]

  let(:port) { AceMQ::TestServers::Server.free_ports(1).first }
  let(:app) do
    rails_application(database: AceMQ::SpecSupport::RailsApplication::SQLITE).tap do |app|
      app.write("config/initializers/acemq.rb", <<~RUBY)
        AceMQ::Rails.config.url = "amqp://127.0.0.1:1"
        AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new).start
      RUBY
      app.write("config/routes.rb", <<~RUBY)
        PROBE = AceMQ::Rails::Probe.new
        ASK = ->(path) { PROBE.call("PATH_INFO" => path).values_at(0, 2) }
        Rails.application.routes.draw do
          get "/told", to: ->(_) { [200, {}, [JSON.generate(pid: Process.pid, live: ASK["/live"], metrics: ASK["/metrics"])]] }
        end
      RUBY
    end
  end

  # @return [Hash] what the process says that takes the request
  def told
    JSON.parse(Net::HTTP.get(URI("http://127.0.0.1:#{port}/told")), symbolize_names: true)
  rescue SystemCallError, EOFError
    {}
  end

  def shown(told)
    told[:metrics].last.first[/acemq_relay_state/] ? JSON.parse(told[:live].last.first)["checks"].keys : []
  end

  def end_of(process)
    process.signal("TERM").wait
  end

  it "are alive in a worker that was never to run it, which shows none" do
    app.write("config/puma.rb", "workers 2\npreload_app!\nplugin :acemq_relay\nbind 'tcp://127.0.0.1:#{port}'\n")
    puma = app.start(*served, "puma", "-C", "config/puma.rb")
    found = {}
    eventually(40) { expect(told.tap { |answer| found[answer[:pid]] = answer if answer[:pid] } && found.size).to eq 2 }

    expect(found.each_value.map { |answer| answer[:live].first }).to eq [200, 200]
    expect(found.each_value.map { |answer| shown(answer) }).to contain_exactly([], ["relay 1"])
    end_of(puma)
  end

  it "run it where rackup has brought up Puma" do
    rackup = app.start(*served, "rackup", "-s", "puma", "-p", port.to_s)
    answer = nil
    eventually(40) { expect(answer = told).to include(:live) }

    expect([answer[:live].first, shown(answer)]).to eq [200, ["relay 1"]]
    end_of(rackup)
  end
end
