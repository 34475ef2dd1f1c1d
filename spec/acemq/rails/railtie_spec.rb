# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# A Rails application, as small as they come, booted in a process of its own.
RSpec.describe "a Rails application with acemq_native" do
  around { |example| Dir.mktmpdir { |folder| (@root = folder) && example.run } }

  def write(path, text)
    file = File.join(@root, path)
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, text)
  end

  # Boots, then runs the script inside the application.
  def boot(script = "", application: "")
    write("config/application.rb", <<~RUBY)
      require "rails"
      require "acemq_native"
      class Shop < Rails::Application
        config.root = #{@root.inspect}
        config.eager_load = false
        config.logger = Logger.new(IO::NULL)
        config.secret_key_base = "x" * 30
        #{application}
      end
    RUBY
    load_path = $LOAD_PATH.flat_map { |path| ["-I", path] }
    Open3.capture2e({ "RUBYOPT" => nil, "RAILS_ENV" => "test" }, RbConfig.ruby, *load_path, "-e",
                    "require #{File.join(@root, "config/application").inspect}; Shop.initialize!; #{script}", chdir: @root)
  end

  def printed(script, **options)
    out, status = boot(script, **options)
    raise out unless status.success?

    out.lines.grep_v(/warning:/).join.strip
  end

  it "boots without a broker and without a file" do
    expect(printed("p [AceMQ::Rails.config.url, AceMQ::Rails.connected?]"))
      .to eq('["amqp://guest:guest@localhost:5672", false]')
  end

  it "records a message without a broker" do
    expect(printed('p AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, {}, to: "q").routing_key',
                   application: 'config.acemq.url = "amqp://127.0.0.1:1"')).to eq('"q"')
  end

  it "reads config/acemq.yml for its environment" do
    write("config/acemq.yml", <<~YAML)
      test:
        url: amqp://file/vhost
        client-name: <%= "shop" %>
        connect_timeout: 3
      production:
        url: amqp://elsewhere
    YAML

    expect(printed("p AceMQ::Rails.config.to_h.to_a"))
      .to eq('[[:url, "amqp://file/vhost"], [:client_name, "shop"], [:connect_timeout, 3]]')
  end

  it "lets application.rb, the environment and an initializer win over the file" do
    write("config/acemq.yml", "test: {url: amqp://file, client_name: file, connect_timeout: 1, heartbeat: 1}")
    write("config/environments/test.rb", "Shop.configure { config.acemq.client_name = 'environment' }")
    write("config/initializers/acemq.rb", "AceMQ::Rails.config.connect_timeout = AceMQ::Rails.config.heartbeat + 1")

    expect(printed("p AceMQ::Rails.config.to_h.sort", application: 'config.acemq.url = "amqp://ruby"'))
      .to eq('[[:client_name, "environment"], [:connect_timeout, 2], [:heartbeat, 1], [:url, "amqp://ruby"]]')
  end

  it "takes settings that are put in its place as a whole, and refuses wrong ones" do
    write("config/environments/test.rb", "Shop.configure { config.acemq = { client_name: 'environment' } }")
    expect(printed("p AceMQ::Rails.config.to_h.sort, Shop.config.acemq.equal?(AceMQ::Rails.config)",
                   application: 'config.acemq = { url: "amqp://ruby" }'))
      .to eq(%([[:client_name, "environment"], [:url, "amqp://ruby"]]\ntrue))

    out, status = boot(application: "config.acemq = { ulr: 1 }")
    expect(status).not_to be_success
    expect(out).to match(/config\.acemq has no ulr/)
  end

  it "does not boot with a setting that does not exist" do
    write("config/acemq.yml", "test: {ulr: amqp://file}")
    out, status = boot

    expect(status).not_to be_success
    expect(out).to match(/config\.acemq has no ulr; its settings are url, .*ConfigurationError/)
  end

  it "does not boot with a setting that cannot be right" do
    out, status = boot(application: "config.acemq.format = 'cbor'")

    expect(status).not_to be_success
    expect(out).to match(/config\.acemq\.format: there is no codec "cbor".*ConfigurationError/)
  end

  it "does not boot with a URL that cannot be right, and does not show its password" do
    out, status = boot(application: 'config.acemq.url = "amqp://u:hunter2@host:port/v"')

    expect(status).not_to be_success
    expect(out).to match(/ConfigurationError/).and(satisfy { |text| !text.include?("hunter2") })
  end

  it "closes the connection after the relays that were started on it, when the process ends" do
    out = printed(<<~RUBY)
      require "acemq/testing"
      transport = AceMQ::Testing::FakeTransport.new
      transport.define_singleton_method(:close) { |**| puts "transport" }
      relay = Object.new
      relay.define_singleton_method(:close) { |**| puts "relay" }
      AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport).register(relay)
      at_exit { puts "application" }
    RUBY

    expect(out.lines.map(&:strip)).to eq(%w[application relay transport])
  end

  it "says so, and nothing worse, when the connection does not close" do
    out = printed(<<~RUBY)
      require "acemq/testing"
      transport = AceMQ::Testing::FakeTransport.new
      transport.define_singleton_method(:close) { |**| raise "stuck" }
      AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: transport)
    RUBY

    expect(out).to include("acemq: the connection could not be closed cleanly: RuntimeError: stuck")
  end

  it "dials at boot when it is told to, and does not boot without a broker" do
    out, status = boot(application: 'config.acemq.url = "amqp://u:hunter2@127.0.0.1:1"; config.acemq.connect_on_boot = true')

    expect(status).not_to be_success
    expect(out).to include("TransportError").and(satisfy { |text| !text.include?("hunter2") })
  end
end
