# frozen_string_literal: true

require "acemq/rails"

RSpec.describe AceMQ::Rails::Configuration do
  # What the settings make of a connection, without one.
  def options(**settings)
    given = nil
    allow(AceMQ::AMQP::Connection).to receive(:lazy) { |url, **rest| given = { url: url, **rest } }
    described_class.new(settings).build_connection
    given
  end

  it "has a default for everything" do
    expect(options).to match(url: "amqp://guest:guest@localhost:5672", codec: an_instance_of(AceMQ::AMQP::JSONCodec),
                             heartbeat: :server)
  end

  it "hands its settings to the connection" do
    given = options(url: "amqp://mq", client_name: "shop", connect_timeout: 3, heartbeat: 30, max_outstanding_publishes: 5,
                    format: "bytes", transport_options: { "confirm_timeout" => 4, heartbeat: 60 })

    expect(given).to include(url: "amqp://mq", client_name: "shop", origin: "shop", connection_timeout: 3, heartbeat: 60,
                             max_outstanding_publishes: 5, confirm_timeout: 4,
                             codec: an_instance_of(AceMQ::AMQP::BytesCodec))
  end

  it "hands the settings of consumers to the connection" do
    given = options(consumer: { prefetch: 5, broker_wait_threshold: 60, max_attempts: 3, initial_delay: 1, jitter: 0.1 })

    expect(given).to include(prefetch: 5, retry_threshold: 60)
    expect(given[:retry_policy]).to have_attributes(max_attempts: 3, initial_delay: 1.0, jitter_factor: 0.1)
    expect(options(consumer: { max_attempts: 1, initial_delay: 1 })[:retry_policy]).to eq AceMQ::AMQP::RetryPolicy.none
  end

  it "sets consumers' settings one by one or together, and takes a file's for the rest" do
    config = described_class.new
    config.consumer.prefetch = 5
    config.consumer = { concurrency: 3 }
    config.add("consumer" => { "prefetch" => 6, "max-attempts" => 2 })

    expect(config.consumer).to have_attributes(prefetch: 5, concurrency: 3, max_attempts: 2, initial_delay: 0.0)
    expect(config.to_h).to eq(consumer: { prefetch: 5, concurrency: 3, max_attempts: 2 })
  end

  it "hands telemetry over, and has interceptors look at both sides" do
    seen = Class.new { def before_publish(_) = nil }.new
    telemetry = AceMQ::AMQP::Telemetry::Registry.new
    connection = described_class.new(interceptors: seen, telemetry: telemetry).build_connection

    expect(connection.interceptors.publish).to eq [seen]
    expect(connection.interceptors.consume).to eq [seen]
    expect(connection.telemetry).to be telemetry
    expect(described_class.new(interceptors: [seen, seen]).build_connection.interceptors.publish).to eq [seen, seen]
  end

  it "builds the topology" do
    config = described_class.new(topology: { queues: [{ name: "shop.payments", retries: { max_attempts: 2 } }] },
                                 consumer: { initial_delay: 60 })

    expect(config.build_topology.queues.map(&:name)).to include("shop.payments", "shop.payments.retry.1m")
  end

  it "takes names from files as they are written there" do
    config = described_class.new("client-name" => "a", "connect_timeout" => 3)

    expect(config).to have_attributes(client_name: "a", connect_timeout: 3)
    expect(options(heartbeat: "server")[:heartbeat]).to eq(:server)
  end

  it "takes nil for not set" do
    expect(described_class.new(url: nil).url).to eq(described_class::DEFAULTS[:url])
  end

  it "adds a file's settings beside those that are made" do
    config = described_class.new(url: "amqp://ruby").add("url" => "amqp://file", "client_name" => "file")

    expect(config).to have_attributes(url: "amqp://ruby", client_name: "file")
  end

  it "names a setting that does not exist, and those that do" do
    message = /no consumer_pathz; its settings are url, /

    expect { described_class.new("consumer_pathz" => 1) }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    expect { described_class.new.consumer_pathz = 1 }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    expect { described_class.new[:consumer_pathz] = 1 }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    expect { described_class.new(consumer: { prefetsh: 1 }) }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /config\.acemq\.consumer has no prefetsh; its settings are prefetch, /)
    expect { described_class.new(consumer: 5) }.to raise_error(AceMQ::AMQP::ConfigurationError, /must be settings by name/)
  end

  it "writes a literal virtual host into the URL" do
    expect(options(url: "amqps://u:p@a,b:5671?heartbeat=5", virtual_host: "team/a b")[:url])
      .to eq("amqps://u:p@a,b:5671/team%2Fa%20b?heartbeat=5")
  end

  it "takes a user or a token out of the URL's way" do
    expect(options(username: "app", password: "p")[:credentials]).to have_attributes(username: "app", secret: "p")
    expect(options(username: "app", password: "p", token: "t")[:credentials]).to have_attributes(token?: true, secret: "t")
  end

  {
    "a user without a password" => [{ username: "app" }, /username and password together/],
    "a URL that is none" => [{ url: 5 }, /url must be a String/],
    "two virtual hosts" => [{ url: "amqp://u:hunter2@h/a", virtual_host: "b" }, /virtual host/],
    "a URL without a scheme" => [{ url: "u:hunter2@h", virtual_host: "b" }, /no broker URL: \*\*\*@h/],
    "publishing without confirms" => [{ publisher_confirms: false }, /publisher_confirms/],
    "a format that nobody knows" => [{ format: "cbor" }, /config\.acemq\.format.*json/],
    "credentials in two places" => [
      { token: "t", tls: AceMQ::AMQP::Security.verified(credentials: AceMQ::AMQP::Credentials.token("u")) }, /both in tls/
    ]
  }.each do |what, (settings, message)|
    it "refuses #{what}" do
      expect { options(**settings) }.to raise_error(AceMQ::AMQP::ConfigurationError, message) { |error|
        expect(error.message).not_to include("hunter2")
      }
    end
  end

  it "says which of the connection's options cannot be right" do
    {
      { connect_timeout: 0 } => /connection_timeout must be seconds/, { heartbeat: 70_000 } => /heartbeat/,
      { url: "http://h" } => %r{config\.acemq: .*amqps://},
      { transport_options: { hearbeat: 1 } } => /unknown keyword hearbeat; .*heartbeat/,
      { tls: AceMQ::AMQP::Security.verified } => /amqps/, { shutdown_timeout: "soon" } => /shutdown_timeout must be seconds/,
      { consumer: { prefetch: "many" } } => /config\.acemq\.consumer\.prefetch must be an Integer/,
      { consumer: { concurrency: 0 } } => /consumer\.concurrency must be an Integer, 1 or more/,
      { consumer: { jitter: "some" } } => /config\.acemq\.consumer: jitter_factor/,
      { connect_on_boot: "false" } => /connect_on_boot must be true or false, not "false"/,
      { declare_topology_on_boot: "no" } => /declare_topology_on_boot must be true or false/,
      { transport_options: 5 } => /transport_options must be settings by name, not Integer/,
      { topology: 5 } => /topology must be settings by name, not Integer/,
      { consumer: { max_attempts: 3, jitter: "some" } } => /config\.acemq\.consumer: jitter_factor/,
      { consumer: { broker_wait_threshold: -1 } } => /broker_wait_threshold must be seconds/,
      { topology: { bindings: [{ queue: "a", exchange: "b" }] } } => /config\.acemq\.topology: /,
      { topology: { quues: [] } } => /topology has no quues/, { interceptors: Object.new } => /Object is no interceptor/
    }.each do |settings, message|
      expect { described_class.new(settings).validate! }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    end
  end

  it "shows no secret" do
    config = described_class.new(url: "amqp://u:hunter2/@x@h/v", password: "hunter2", token: "hunter2", client_name: "shop")

    expect(config.inspect).to include("shop", "@h/v")
    expect([config.inspect, config.to_s].join).not_to include("hunter2")
    expect { config.nothing }.to raise_error(NoMethodError) { |error| expect(error.message).not_to include("hunter2") }
  end
end
