# frozen_string_literal: true

require "net/http"
require "socket"
require "tmpdir"

RSpec.describe "acemq relay", :broker do
  on_each_database(:postgres) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }

    # What systemd would be told.
    def notifications(folder)
      socket = Socket.new(:UNIX, :DGRAM)
      socket.bind(Socket.pack_sockaddr_un(File.join(folder, "notify")))
      told = Thread::Queue.new
      Thread.new do
        loop { told << socket.recv(4_096) }
      rescue IOError
        nil
      end
      cleanups << -> { socket.close }
      told
    end

    def all(queue)
      Array.new(queue.size) { queue.pop }
    end

    def get(port, path)
      Net::HTTP.get_response("127.0.0.1", path, port)
    end

    it "publishes, pauses, goes on, shows its threads and ends in order, as signals tell it, and tells systemd" do
      folder = Dir.mktmpdir.tap { |path| cleanups << -> { FileUtils.rm_rf(path) } }
      told = notifications(folder)
      put("first", to: queue)
      put("nobody's", to: "spec.nosuch\nforged")
      relay = relay_command("--interval", "0.1", "--threads", "2", "--probe", "0",
                            environment: { "NOTIFY_SOCKET" => File.join(folder, "notify"), "WATCHDOG_USEC" => "400000" })
      eventually(30) { expect(marked).to eq %w[first] }
      eventually { expect(relay.output).to match(/publishing acemq_outbox #1, acemq_outbox #2, process #{relay.pid}$/) }
      eventually { expect(relay.output).to match(/NO_ROUTE.* forged\)$/) } # and no line of its own
      eventually { expect(told.size).to be >= 3 }
      expect(all(told).join("\n")).to match(/\AREADY=1\nSTATUS=publishing.*WATCHDOG=1/m)

      relay.signal("TSTP")
      eventually { expect(relay.output.scan(/acemq_outbox #\d paused: told to pause/).size).to eq 2 }
      put("while paused", to: queue)
      relay.signal("TTIN")
      eventually { expect(relay.output).to match(%r{thread acemq-relay sleep.*\n +/.+relay/worker\.rb:\d+}) }
      expect(marked).to eq %w[first]

      relay.signal("CONT")
      eventually { expect(marked).to eq ["first", "while paused"] }
      relay.signal("TERM")
      expect(relay.ended).to eq 0
      expect(relay.output).to match(/stopping: no more claims.*stopped$/m)
      expect(all(told)).to include "STOPPING=1"
      expect(leased).to be_empty
    end

    it "waits for a broker and a database that are away, says so, and ends in order all the same" do
      relay = relay_command("--interval", "0.1", url: "amqp://127.0.0.1:1")
      eventually(30) { expect(relay.output).to match(/acemq_outbox down: .*refused/) }
      relay.signal("INT")
      expect(relay.ended).to eq 0

      nowhere = AceMQ::SpecSupport::Database.config(:postgres).merge(host: "127.0.0.1", port: 1)
      without = relay_command("--interval", "0.1", database: nowhere)
      eventually(30) { expect(without.output).to match(/the database does not answer yet: .*\n(.*\n)*.*acemq_outbox down: database: /) }
      without.signal("TERM")
      expect(without.ended).to eq 0
    end

    it "ends with 78 where its table is missing: waiting would not bring it" do
      relay = relay_command("--table", "acemq_nowhere")

      expect(relay.ended(30)).to eq 78
      expect(relay.output).to match(/acemq: table acemq_nowhere in the PostgreSQL database .* does not exist/)
    end

    context "with relays of the application's own" do
      let(:application) { ["--require", File.expand_path("../../support/files/application_with_a_relay.rb", __dir__)] }

      it "refuses settings that are theirs" do
        relay = relay_command(*application, "--batch", "7", "--threads", "1", "--ordering", "strict")

        expect(relay.ended(10)).to eq 64
        expect(relay.output).to match(/acemq: --threads, --batch, --ordering: .*application's own.*initializers.*--table/)
      end

      it "runs others where a table is named" do
        relay = relay_command(*application, "--table", "acemq_nowhere", "--batch", "7")

        expect(relay.ended(30)).to eq 78
        expect(relay.output).to match(/table acemq_nowhere .* does not exist/)
      end

      it "ends with 78 where the table of one is missing" do
        relay = relay_command(*application, environment: { "ACEMQ_SPEC_TABLE" => "acemq_nowhere" })

        expect(relay.ended(30)).to eq 78
        expect(relay.output).to match(/table acemq_nowhere .* does not exist/)
      end
    end

    it "ends at once, with 75, when it is told twice" do
      proxy = new_proxy
      put("first", to: queue)
      relay = relay_command("--interval", "0.1", "--timeout", "30", url: proxy.url(broker.url))
      eventually(30) { expect(marked).to eq %w[first] }
      proxy.stall(:down)
      put("held", to: queue)
      eventually { expect(leased).to eq %w[held] }
      relay.signal("TERM")
      eventually { expect(relay.output).to include "stopping" }
      relay.signal("TERM")

      expect(relay.ended).to eq 75
      expect(relay.output).to include "stopped before everything was settled"
    end

    it "answers over HTTP while it relays" do
      port = AceMQ::TestServers::Server.free_ports(1).first
      relay = relay_command("--interval", "0.1", "--probe", port.to_s)
      eventually(30) { expect((get(port, "/ready").code rescue nil)).to eq "200" } # rubocop:disable Style/RescueModifier
      put("first", to: queue)
      eventually { expect(marked).to eq %w[first] }

      expect(get(port, "/live").code).to eq "200"
      eventually { expect(get(port, "/metrics").body).to match(/^acemq_outbox_published_total\{outbox="acemq_outbox",exchange=""\} 1$/) }
      expect(get(port, "/elsewhere").code).to eq "404"
      relay.signal("TERM")
      expect(relay.ended).to eq 0
      expect { get(port, "/live") }.to raise_error(SystemCallError)
    end
  end
end
