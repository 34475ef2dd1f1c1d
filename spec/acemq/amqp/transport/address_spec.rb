# frozen_string_literal: true

# Case 26
RSpec.describe AceMQ::AMQP::Transport, "and its URL" do
  password = "p+w/@:#é%"
  encoded = "p+w%2F%40%3A%23%C3%A9%25"
  user = "spec_#{SecureRandom.hex(4)}"

  before(:all) do
    broker = AceMQ::TestServers.rabbitmq
    broker.ctl("add_user", user, password)
    broker.ctl("add_vhost", "team/a")
    ["/", "team/a"].each { |vhost| broker.ctl("set_permissions", "-p", vhost, user, ".*", ".*", ".*") }
  end

  after(:all) do
    broker = AceMQ::TestServers.rabbitmq
    next unless broker.ours?

    broker.ctl("delete_user", user)
    broker.ctl("delete_vhost", "team/a")
  end

  let(:user) { user }
  let(:password) { password }
  let(:encoded) { encoded }
  let(:port) { URI(broker.url).port }

  def url(rest = "", secret: encoded)
    "amqp://#{user}:#{secret}@127.0.0.1:#{port}#{rest}"
  end

  def failure(url, **options)
    open_connection(url, **options)
    nil
  rescue StandardError => e
    e
  end

  it "decodes user, password and vhost" do
    open_connection(url("/team%2Fa"), client_name: "the spec")
    open_connection(url)

    listed = broker.ctl("list_connections", "user", "vhost", "client_properties").lines
    expect(listed.grep(%r{\A#{user}\tteam/a\t.*the spec})).not_to be_empty
    expect(listed.grep(%r{\A#{user}\t/\t})).not_to be_empty
  end

  it "says what is wrong with a login, and never with which password" do
    failures = {
      failure(url(secret: "wrong-secret")) => /refused the user "#{user}"/,
      failure(url("/")) => /vhost with the empty name; leave the slash off/,
      failure(url("/nosuch")) => /vhost of the URL is "nosuch"/,
      failure("amqp://#{user}:bare#secret@127.0.0.1:#{port}") => /%23/,
      failure("amqp://#{user}:bare/secret@127.0.0.1:#{port}") => /%2F/
    }

    failures.each do |error, text|
      expect(error).to be_a(AceMQ::AMQP::TransportError).or be_a(AceMQ::AMQP::ConfigurationError)
      expect(error.message).to match(text)
      expect(error.full_message).not_to match(/secret|p\+w/)
    end
  end

  it "refuses parameters it does not know or that are out of range" do
    { "?heartbeat=0" => /heartbeat/, "?heartbeat=70000" => /heartbeat/, "?connection_timeout=5s" => /connection_timeout/,
      "?hartbeat=5" => /hartbeat.*known are heartbeat/m }.each do |rest, text|
      expect { described_class.new(url(rest)) }.to raise_error(AceMQ::AMQP::ConfigurationError, text)
    end
  end

  it "refuses settings that cannot be right" do
    { { heartbeat: 0 } => /heartbeat/, { connection_timeout: -1 } => /connection_timeout/, { confirm_timeout: "5" } => /confirm_timeout/,
      { hartbeat: 1 } => /unknown transport option hartbeat/, { security: :on } => /Security/,
      { max_outstanding_publishes: 0 } => /max_outstanding_publishes/,
      { security: AceMQ::AMQP::Security.verified } => /amqps/ }.each do |options, text|
      expect { described_class.new(url, **options) }.to raise_error(AceMQ::AMQP::ConfigurationError, text)
    end
    expect { described_class.new(nil) }.to raise_error(AceMQ::AMQP::ConfigurationError, /String/)
  end

  it "takes credentials instead of the URL's" do
    credentials = AceMQ::AMQP::Credentials.of(username: user, password: password)
    connection = open_connection("amqp://127.0.0.1:#{port}", credentials: credentials)

    expect(connection).to be_open
  end

  it "negotiates the heartbeat it is told" do
    open_connection(url("?heartbeat=7"))

    expect(broker.ctl("list_connections", "user", "timeout").lines.map(&:chomp)).to include("#{user}\t7")
  end

  it "shows no secret in inspect" do
    connection = open_connection(url)

    expect([connection.inspect, connection.transport.inspect, described_class.redact(url)]).to all(not_include("p+w"))
    expect(described_class.redact(url)).to include(":***@127.0.0.1")
  end

  RSpec::Matchers.define_negated_matcher :not_include, :include
end
