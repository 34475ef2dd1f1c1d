# frozen_string_literal: true

require "socket"
require "timeout"

RSpec.describe AceMQ::AMQP::Transport, "when something is wrong" do
  # Accepts connections and does with each what the block says.
  def listener
    server = TCPServer.new("127.0.0.1", 0)
    accepted = []
    thread = Thread.new { loop { accepted << server.accept.tap { |socket| yield socket if block_given? } } }
    cleanups << -> { thread.kill.join && [server, *accepted].each(&:close) }
    server.addr[1]
  end

  def dial(url, **options)
    AceMQ::AMQP::Connection.open(url, **options)
  end

  # Counts what another thread gets done during the block.
  def ticks
    count = 0
    thread = Thread.new { loop { sleep(0.01) && count += 1 } }
    yield
    count
  ensure
    thread.kill
  end

  describe "a peer that is no broker (case 7)" do
    it "gives up on a silent one within connection_timeout, TLS or not, while other threads run" do
      port = listener
      ["amqp://127.0.0.1:#{port}?connection_timeout=1000", "amqps://127.0.0.1:#{port}?connection_timeout=1000"].each do |url|
        ran = ticks do
          took = elapsed { expect { dial(url) }.to raise_error(AceMQ::AMQP::TransportError, /connection_timeout \(1 s\)/) }
          expect(took).to be_between(0.9, 3)
        end
        expect(ran).to be > 20
      end
    end

    it "gives up on a silent one when it redials, too" do
      connection = AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:#{listener}", connection_timeout: 0.5)

      expect { connection.publish({}, to: "q") }
        .to raise_error(AceMQ::AMQP::PublishingPausedError, /within connection_timeout/)
    end

    it "says what answers instead" do
      http = listener { |socket| socket.write("HTTP/1.1 400 Bad Request\r\n\r\n") && socket.close_write }
      shut = listener(&:close)

      expect { dial("amqp://127.0.0.1:#{http}") }.to raise_error(AceMQ::AMQP::TransportError, /does not speak AMQP|hung up/)
      expect { dial("amqp://127.0.0.1:#{shut}") }.to raise_error(AceMQ::AMQP::TransportError, /hung up/)
      expect { dial("amqp://127.0.0.1:1") }.to raise_error(AceMQ::AMQP::TransportError, /127.0.0.1:1: .*refused/)
    end

    it "goes on to the next host, within one deadline" do
      port = URI(broker.url).port
      took = elapsed do
        connection = dial("amqp://guest:guest@127.0.0.1:1,127.0.0.1:#{listener},127.0.0.1:#{port}", connection_timeout: 3)
        connections << connection
        expect(connection).to be_open
      end
      expect(took).to be < 3
    end
  end

  describe "an alarm of the broker" do
    let(:connection) { open_connection(confirm_timeout: 2) }
    let(:queue) { new_queue(connection) }

    it "lets a timeout fire (case 10), and works again when it is over" do
      queue
      under_alarm do
        took = elapsed { expect { Timeout.timeout(1) { connection.publish({}, to: queue) } }.to raise_error(Timeout::Error) }
        expect(took).to be_between(0.9, 2)
      end
      connection.publish({ "n" => "after" }, to: queue, mandatory: true)

      expect(drain(connection, queue).map(&:body)).to end_with('{"n":"after"}')
    end

    it "ends a wait for a confirm in time, with other threads running (case 6)" do
      queue
      under_alarm do
        ran = ticks do
          took = elapsed do
            expect { connection.publish({}, to: queue) }
              .to raise_error(AceMQ::AMQP::ConfirmTimeout, /within 2 s.*; the broker has blocked this connection \(.+\)/) { |e|
                    expect(e).to have_attributes(scope: :connection, unknown?: true)
                  }
          end
          expect(took).to be_between(1.9, 3.5)
        end
        expect(ran).to be >= 100
      end
      eventually { expect { connection.publish({}, to: queue, mandatory: true) }.not_to raise_error }
    end

    it "declines a publish at once when it knows of the alarm, without writing anything" do
      patient = open_connection(confirm_timeout: 60)
      queue
      under_alarm do
        waiting = Thread.new { patient.publish({ "n" => 1 }, to: queue) }
        cleanups << -> { waiting.kill.join }
        eventually { expect(patient.blocked_reason).to be_a(String) }

        expect { Timeout.timeout(5) { patient.publish({ "n" => 2 }, to: queue) } }
          .to raise_error(AceMQ::AMQP::PublishingPausedError)
      end
      eventually { expect(patient).not_to be_blocked }
      eventually { expect(connection.message_count(queue)).to eq(1) }
      expect(drain(connection, queue).map(&:body)).to eq(['{"n":1}'])
    end

    # A relay's batch sits the alarm out, and a publish that came before anybody knew of the alarm stands behind it.
    it "declines, once it knows, what waits behind a relay's batch" do
      proxy = new_proxy
      through = open_connection(proxy.url(broker.url), confirm_timeout: 60)
      through.publish({}, to: queue)
      proxy.stall(:up)
      relay = through.transport.submit([{ exchange: "", routing_key: queue, body: "r", message_id: "r-1" }], in_flight: 1)
      publishing = Thread.new { through.publish({}, to: queue) }
      publishing.report_on_exception = false
      eventually { expect(publishing.status).to eq "sleep" }
      under_alarm do
        proxy.resume
        expect { Timeout.timeout(20) { publishing.value } }.to raise_error(AceMQ::AMQP::PublishingPausedError, /alarm/)
        expect(relay.wait(0)).to be_nil
      end
      expect(relay.wait(30)).to eq [nil]
    end

    it "lets SIGINT end the process (case 10)" do
      queue
      script = "require 'acemq_native'; c = AceMQ::AMQP::Connection.open(ARGV[0]); puts :ready; $stdout.flush; " \
               "c.publish({}, to: ARGV[1])"
      under_alarm do
        library = File.expand_path("../../../../lib", __dir__)
        IO.popen([RbConfig.ruby, "-I", library, "-e", script, broker.url, queue, { err: File::NULL }]) do |child|
          child.gets
          sleep 0.2 # the publish has to be out
          took = elapsed do
            Process.kill("INT", child.pid)
            Process.wait(child.pid)
          end
          expect(took).to be < 2
        end
      end
    end
  end

  describe "a frozen broker (case 6)" do
    it "ends the wait in time and works again once it thaws" do
      connection = open_connection(confirm_timeout: 1)
      queue = new_queue(connection)
      connection.publish({}, to: queue)
      broker.pause
      begin
        took = elapsed { expect { connection.publish({}, to: queue) }.to raise_error(AceMQ::AMQP::ConfirmTimeout) }
        expect(took).to be_between(0.9, 3)
      ensure
        broker.resume
      end
      eventually { expect { connection.publish({}, to: queue, mandatory: true) }.not_to raise_error }
    end

    it "ends what comes before the first publish in time, too: the question for a channel, and for an exchange" do
      { "" => /open a channel within 1 s/, "shop" => /an exchange is there within 1 s/ }.each do |exchange, text|
        connection = open_connection(confirm_timeout: 1)
        broker.pause
        begin
          took = elapsed do
            expect { connection.publish({}, to: "k", exchange: exchange) }
              .to raise_error(AceMQ::AMQP::PublishingPausedError, text)
          end
          expect(took).to be_between(0.9, 3)
        ensure
          broker.resume
        end
      end
    end
  end

  it "dials anew after the broker has closed the connection" do
    connection = open_connection
    queue = new_queue(connection)
    broker.ctl("close_all_connections", "spec")

    eventually { expect { connection.publish({}, to: queue, mandatory: true) }.not_to raise_error }
    expect(connection).to be_open
  end

  it "closes once and for all, and twice without complaint" do
    connection = open_connection
    connection.close
    connection.close

    expect { connection.publish({}, to: "q") }.to raise_error(AceMQ::AMQP::PublishError, /was closed/)
    expect { connection.pull("q") }.to raise_error(AceMQ::AMQP::TransportError, /was closed/)
    expect(connection).not_to be_open
  end
end
