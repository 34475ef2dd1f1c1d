# frozen_string_literal: true

require "tmpdir"

# Case 27
RSpec.describe AceMQ::AMQP::Transport, "over TLS" do
  names = %w[DNS:broker.test DNS:localhost IP:127.0.0.1]
  folder = Dir.mktmpdir("acemq-tls")
  certificates = AceMQ::TestServers::Certificates.new(folder)
  other_authority = AceMQ::TestServers::Certificates.new(File.join(folder, "other"), name: "another authority")

  after(:all) { FileUtils.rm_rf(folder) }

  def security(authority, **more)
    AceMQ::AMQP::Security.verified(certificate_authority: authority, **more)
  end

  # A TLS server that never gets as far as AMQP: enough for what a handshake decides.
  def tls_listener(pair)
    context = OpenSSL::SSL::SSLContext.new
    context.cert = OpenSSL::X509::Certificate.new(File.read(pair.certificate))
    context.key = OpenSSL::PKey::RSA.new(File.read(pair.key))
    asked = Queue.new
    context.servername_cb = ->((_, name)) { asked << name && nil }
    tcp = TCPServer.new("127.0.0.1", 0)
    server = OpenSSL::SSL::SSLServer.new(tcp, context)
    thread = Thread.new { loop { server.accept.close rescue nil } } # rubocop:disable Style/RescueModifier
    cleanups << -> { thread.kill && tcp.close }
    [tcp.addr[1], asked]
  end

  describe "with a broker" do
    broker = nil
    before(:all) do
      server = certificates.issue("broker.test", names: names)
      broker = AceMQ::TestServers.new_rabbitmq(tls: server, authority: certificates.authority).start
    end

    after(:all) { broker.dispose }

    let(:client) { certificates.issue("client") }

    it "connects with the authority and a client certificate, and publishes" do
      url = broker.tls_url(host: "localhost")
      connection = open_connection(url, security: security(certificates.authority, certificate: client.certificate, key: client.key))
      queue = connection.declare_queue("tls", queue_type: :classic)
      connection.publish({ "n" => 1 }, to: queue, mandatory: true)

      expect(connection.pull(queue).body).to eq('{"n":1}')
    end

    it "takes the files from the URL as well" do
      parameters = { cacertfile: certificates.authority, certfile: client.certificate, keyfile: client.key }
      query = parameters.map { |name, path| "#{name}=#{path.gsub("/", "%2F")}" }.join("&")

      expect(open_connection("#{broker.tls_url}?#{query}")).to be_open
    end

    it "is turned away without the client certificate the broker asks for" do
      expect { open_connection(broker.tls_url, security: security(certificates.authority)) }
        .to raise_error(AceMQ::AMQP::TransportError, /hung up|handshake/)
    end
  end

  it "accepts only a certificate that verifies for the host's name" do
    {
      certificates.issue("self", names: names, signed_by_itself: true) => [certificates.authority, /UnknownIssuer|CaUsedAsEndEntity/],
      certificates.issue("elsewhere", names: ["DNS:elsewhere.test"]) => [certificates.authority, /not valid for name|NotValidForName/],
      certificates.issue("old", names: names, expired: true) => [certificates.authority, /expired/i],
      certificates.issue("good", names: names) => [other_authority.authority, /UnknownIssuer/]
    }.each do |pair, (authority, text)|
      port, = tls_listener(pair)
      took = elapsed do
        expect { open_connection("amqps://localhost:#{port}", security: security(authority)) }
          .to raise_error(AceMQ::AMQP::TransportError, text)
      end
      expect(took).to be < 5
    end
  end

  it "does not trust a private authority it was not told of" do
    port, = tls_listener(certificates.issue("good", names: names))

    expect { open_connection("amqps://localhost:#{port}") }.to raise_error(StandardError, /UnknownIssuer|no trusted certificate/)
  end

  it "sends the server's name" do
    port, asked = tls_listener(certificates.issue("good", names: names))
    expect { open_connection("amqps://localhost:#{port}", security: security(certificates.authority)) }
      .to raise_error(AceMQ::AMQP::TransportError)

    expect(asked.pop).to eq("localhost")
  end

  it "skips the check only with a reason" do
    port, = tls_listener(certificates.issue("self", names: names, signed_by_itself: true))
    unverified = AceMQ::AMQP::Security.without_verifying_the_broker(because: "the spec")

    # The handshake succeeds: what fails is AMQP, which this listener does not speak.
    expect { open_connection("amqps://localhost:#{port}", security: unverified) }
      .to raise_error(AceMQ::AMQP::TransportError, /hung up/)
    expect { described_class.new("amqps://localhost?verify=verify_none") }.to raise_error(AceMQ::AMQP::ConfigurationError, /because/)
  end

  it "says when a port speaks no TLS" do
    port = URI(AceMQ::TestServers.rabbitmq.url).port

    expect { open_connection("amqps://localhost:#{port}", security: security(certificates.authority)) }
      .to raise_error(AceMQ::AMQP::TransportError, /does not speak TLS/)
  end

  it "honours SSL_CERT_FILE" do
    port, = tls_listener(certificates.issue("good", names: names))
    script = "require 'acemq_native'; begin; AceMQ::AMQP::Connection.open(ARGV[0]); rescue StandardError => e; puts e.message; end"
    run = lambda do |file|
      IO.popen([{ "SSL_CERT_FILE" => file, "SSL_CERT_DIR" => nil }, RbConfig.ruby, "-I", File.expand_path("../../../../lib", __dir__), "-e",
                script, "amqps://localhost:#{port}"], &:read)
    end

    expect(run.call(certificates.authority)).to match(/hung up/) # past the handshake
    expect(run.call(other_authority.authority)).to match(/UnknownIssuer/)
  end

  it "says which file cannot be used" do
    key = certificates.issue("a").key
    expect { described_class.new("amqps://localhost?cacertfile=%2Fnosuch.pem") }
      .to raise_error(AceMQ::AMQP::ConfigurationError, %r{certificate authority \(/nosuch.pem\)})
    expect { security("/nosuch.pem") }.to raise_error(AceMQ::AMQP::ConfigurationError, /certificate_authority/)
    mixed = security(certificates.authority, certificate: certificates.issue("b").certificate, key: key)
    expect { described_class.new("amqps://localhost", security: mixed) }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /do not go together/)
  end
end
