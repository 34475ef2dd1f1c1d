# frozen_string_literal: true

require "acemq/rails"
require "acemq/operations"
require "acemq/testing"
require "socket"
require "timeout"
require "tmpdir"

RSpec.describe AceMQ::Rails::Probe, :broker do
  def get(path)
    status, headers, body = probe.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path)
    @type = headers["content-type"]
    [status, body.join]
  end

  def json(path)
    status, body = get(path)
    [status, JSON.parse(body, symbolize_names: true)]
  end

  def metric(name)
    get("/metrics").last[/^#{name}(?:\{.*\})? (\S+)$/, 1]&.to_f
  end

  def state
    get("/metrics").last.scan(/^acemq_relay_state\{.*state="(\w+)"\} 1$/).flatten
  end

  on_each_database(:postgres) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:proxy) { new_proxy }
    let(:amqp) { open_connection(proxy.url(broker.url)) }
    let(:queue) { new_queue(open_connection) }
    let(:relay) { new_relay(amqp, interval: 0.1) }
    let(:probe) { described_class.new(relays: { "main" => relay }) }

    it "is ready while the relay works, and says what it does" do
      relay.start
      eventually { expect(get("/ready").first).to eq 200 }

      expect(json("/ready").last).to match(
        ok: true, checks: { "outbox acemq_outbox": { ok: true },
                            "relay main": { ok: true, degraded: false, state: match(/idle|publishing/), since: match(/Z\z/) } }
      )
      expect(get("/live").first).to eq 200
      expect(@type).to eq "application/json"
    end

    it "is not ready without a broker, within 5 s, and again within 5 s; the state moves with it" do
      relay.start
      eventually { expect([get("/ready").first, metric("acemq_relay_connected")]).to eq [200, 1] }

      proxy.refuse
      eventually(5) { expect([get("/ready").first, state, metric("acemq_relay_connected")]).to eq [503, ["down"], 0] }
      expect(json("/ready").last[:checks][:"relay main"]).to include(ok: false, state: "down", reason: /refused|reset/)
      expect(get("/live").first).to eq 200 # a new process would have no broker either

      proxy.resume
      eventually(5) { expect([get("/ready").first, state.first]).to match [200, /idle|publishing/] }
      expect(metric("acemq_relay_reconnects_total")).to be >= 1
    end

    it "is ready and degraded while the broker takes nothing, or the relay is paused" do
      allow(amqp.transport).to receive(:blocked_reason).and_return("memory alarm")
      relay.start
      eventually { expect(json("/ready")).to match [200, hash_including(ok: true)] }
      eventually { expect(state).to eq ["blocked"] }
      expect(json("/ready").last[:checks][:"relay main"]).to include(degraded: true, reason: /memory alarm/)

      allow(amqp.transport).to receive(:blocked_reason).and_return(nil)
      relay.pause
      eventually { expect(state).to eq ["paused"] }
      expect(json("/ready").last[:checks][:"relay main"]).to include(ok: true, degraded: true)
    end

    it "is not alive when the thread of a relay is dead" do
      expect(get("/live").first).to eq 503
      relay.start

      expect(get("/live").first).to eq 200
    end

    it "is not ready while the database does not answer, and does not wait for it for long" do
      stub_const("#{described_class}::FRESH", 0)
      hanging = Thread::Queue.new
      slow = AceMQ::Operations::Outboxes.new.first
      allow(slow.store).to receive(:ping) { hanging.pop }
      probe = described_class.new(relays: {}, outboxes: [slow], patience: 0.1)
      before = Thread.list.size
      answers = Array.new(3) { probe.call("PATH_INFO" => "/ready") }

      expect(answers.map(&:first)).to eq [503] * 3
      expect(answers.first.last.first).to include "no answer within 0.1 s"
      expect(Thread.list.size - before).to be <= 1
      hanging.close
      eventually { expect(probe.call("PATH_INFO" => "/ready").first).to eq 200 }
    end

    it "shows the figures that it has while new ones take their time" do
      put("a", to: "x")
      slow = AceMQ::Operations::Outboxes.new.first
      probe = described_class.new(relays: {}, outboxes: [slow], patience: 0.2)
      stub_const("#{described_class}::Question::REST", 0)
      stub_const("#{described_class}::FRESH", 0)
      figures = -> { probe.call("PATH_INFO" => "/metrics").last.first.scan(/^acemq_outbox_(?:up|pending)\{.*\} (\d+)$/).flatten }
      expect(figures.call).to eq %w[1 1]
      hanging = Thread::Queue.new
      allow(slow.store).to receive(:pending_count) { hanging.pop }

      expect(figures.call).to eq %w[1 1]
      hanging << 7
      eventually { expect(figures.call).to eq %w[1 7] }
      hanging.close
    end

    it "asks a slow database no more often than it can answer" do
      times = []
      question = described_class::Question.new(1, 0)
      5.times { question.ask { times << sleep(0.05) }.answer }

      expect(times.size).to eq 1
    end

    it "says that a database is gone" do
      probe = described_class.new(relays: {}, outboxes: AceMQ::Operations::Outboxes.new.to_a)
      answer = without_database { probe.call("PATH_INFO" => "/ready") }

      expect(answer.first).to eq 503
      expect(without_database { described_class.new(relays: {}).call("PATH_INFO" => "/metrics").last.first })
        .to include(%(acemq_outbox_up{outbox="acemq_outbox"} 0))
    end

    it "shows what is in the outbox, at the moment of asking" do
      store = outbox
      put("held", to: "nobody.consumes.this")
      sweep_quietly(relay)
      put("waiting", to: "x")
      store.add(outbox_record("broken", routing_key: "y"))
      execute("UPDATE acemq_outbox SET attempts = 10 WHERE id = 'broken'")
      execute("UPDATE acemq_outbox SET created_at = #{sql_time(-100)} WHERE id = 'waiting'")

      expect([metric("acemq_outbox_pending"), metric("acemq_outbox_held_destinations"), metric("acemq_outbox_retired"),
              metric("acemq_outbox_up")]).to eq [2, 1, 1, 1]
      expect(metric("acemq_outbox_oldest_pending_seconds")).to be_between(100, 130)
      expect(@type).to start_with "text/plain; version=0.0.4"
    end

    it "tells a monitor of rows that will not be tried again" do
      expect(json("/outbox")).to eq [200, { ok: true, checks: { acemq_outbox: { ok: true, retired: 0 } } }]
      put("broken", to: "x")
      execute("UPDATE acemq_outbox SET attempts = 10")
      stub_const("#{described_class}::FRESH", 0)
      fresh = described_class.new(relays: {})

      expect(fresh.call("PATH_INFO" => "/outbox").first).to eq 503
    end

    it "knows no other path" do
      expect(json("/")).to eq [404, { paths: %w[/live /ready /outbox /metrics] }]
    end

    it "is ready without a relay and without a broker: rows can be written" do
      expect(described_class.new(relays: {}).call("PATH_INFO" => "/ready").first).to eq 200
    end
  end

  describe "on databases of any number" do
    around do |example|
      Dir.mktmpdir do |folder|
        @folder = folder
        AceMQ::SpecSupport::Database.connect(:sqlite)
        example.run
      ensure
        AceMQ::SpecSupport::Database.disconnect
      end
    end

    before { connection { |db| db.drop_table("acemq_outbox", if_exists: true) } }

    let(:patterns) { AceMQ::AMQP::Patterns }
    let(:transport) { AceMQ::Testing::FakeTransport.new }

    # @return [Object] a store in a database of its own
    def store_in_database(name)
      stub_const(name, Class.new(ActiveRecord::Base) { self.abstract_class = true })
      model = Object.const_get(name)
      model.establish_connection(adapter: "sqlite3", database: File.join(@folder, name))
      cleanups << -> { model.remove_connection }
      patterns::ActiveRecordOutboxStore.create_table(model.connection)
      patterns::ActiveRecordOutboxStore.new(model: model)
    end

    def relay_on(store)
      patterns::OutboxRelay.new(transport, store)
    end

    def answer(probe, path)
      status, _, body = probe.call("PATH_INFO" => path)
      [status, path == "/metrics" ? body.join : JSON.parse(body.join)["checks"]]
    end

    it "shows each outbox under a name of its own, also in what is counted" do
      shop, billing = %w[Shop Billing].map { |name| store_in_database(name) }
      relays = [shop, billing, patterns::ActiveRecordOutboxStore.new(model: Billing)].map { |store| relay_on(store) }
      metrics = AceMQ::Metrics.new.start.tap { |counting| cleanups << -> { counting.stop } }
      probe = described_class.new(relays: relays.each_with_index.to_h { |relay, index| [index.to_s, relay] }, metrics: metrics)
      stub_const("#{described_class}::FRESH", 0)
      2.times { |index| billing.add(outbox_record(index.to_s, routing_key: "x")) }
      relays[1].sweep
      billing.add(outbox_record("waits", routing_key: "x"))

      expect(answer(probe, "/ready").last.keys.grep(/outbox/)).to eq ["outbox acemq_outbox of Shop", "outbox acemq_outbox of Billing"]
      expect(answer(probe, "/metrics").last.scan(/^acemq_outbox_(?:pending|(?:add|publish)ed_total)\{outbox="([^"]+)".*\} (\d+)$/))
        .to eq [["acemq_outbox of Shop", "0"], ["acemq_outbox of Billing", "1"],
                ["acemq_outbox of Billing", "3"], ["acemq_outbox of Billing", "2"]]
    end

    it "asks all databases at the same time" do
      present = Thread::Queue.new
      outboxes = Array.new(3) { |index| AceMQ::Operations::Outboxes::Named.new(index.to_s, patterns::ActiveRecordOutboxStore.new) }
      all_there = -> { eventually(5) { expect(present.size).to eq 3 } }
      outboxes.each { |outbox| allow(outbox.store).to receive(:ping) { (present << 1) && all_there.call } }

      expect(answer(described_class.new(relays: {}, outboxes: outboxes, patience: 10), "/ready").first).to eq 200
    end

    it "asks a database for no figures that gives no answer" do
      outbox = AceMQ::Operations::Outboxes::Named.new("gone", patterns::ActiveRecordOutboxStore.new)
      allow(outbox.store).to receive(:ping).and_raise(ActiveRecord::ConnectionNotEstablished)
      allow(outbox.store).to receive(:pending_count)

      expect(answer(described_class.new(relays: {}, outboxes: [outbox]), "/metrics").last).to include %(acemq_outbox_up{outbox="gone"} 0)
      expect(outbox.store).not_to have_received(:pending_count)
    end

    it "takes an application without an outbox for one that is ready" do
      expect(answer(described_class.new(relays: {}), "/ready")).to eq [200, {}]
      expect(answer(described_class.new(relays: {}), "/outbox")).to eq [200, {}]
      expect(answer(described_class.new(relays: {}), "/metrics").last).not_to include "acemq_outbox_up"

      relay = relay_on(patterns::InMemoryOutboxStore.new).start.tap { |started| cleanups << -> { started.close } }
      expect(answer(described_class.new(relays: { "own" => relay }), "/ready")).to match [200, { "relay own" => include("ok" => true) }]
      missing = relay_on(patterns::ActiveRecordOutboxStore.new)
      expect(answer(described_class.new(relays: { "plain" => missing }), "/ready").last)
        .to include "outbox acemq_outbox" => { "ok" => false, "reason" => /does not exist/ }
    end

    it "takes an application without a database for one without an outbox" do
      AceMQ::SpecSupport::Database.disconnect

      expect(answer(described_class.new(relays: {}), "/ready")).to eq [200, {}]
    end

    it "has each metric once, whatever the application observes with" do
      registry = AceMQ::AMQP::Telemetry::Registry.new
      registry.count(AceMQ::AMQP::Telemetry::IDEMPOTENCY_TOTAL, outcome: "first")
      registry.count(AceMQ::AMQP::Telemetry::PUBLISH_TOTAL)
      allow(AceMQ::Rails.config).to receive(:telemetry).and_return(registry)
      page = answer(described_class.new(relays: {}), "/metrics").last

      expect(page.scan(/^# TYPE (\S+)/).flatten.tally.reject { |_, times| times == 1 }).to eq({})
      expect(page).to include("# TYPE acemq_idempotency_total counter", "acemq_publish_total 1")
    end
  end

  describe AceMQ::Rails::ProbeServer do
    subject(:server) { described_class.new(app, port: 0) }

    let(:app) { ->(env) { [200, { "content-type" => "text/plain" }, ["you asked for ", env["PATH_INFO"], "\n"]] } }

    before { server.start }
    after { server.stop }

    def ask(text)
      socket = TCPSocket.new("127.0.0.1", server.port)
      socket.write(text)
      socket.read
    ensure
      socket&.close
    end

    it "speaks as much HTTP as is needed" do
      expect(ask("GET /ready?full=1 HTTP/1.1\r\nHost: x\r\n\r\n"))
        .to eq "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 21\r\nconnection: close\r\n\r\nyou asked for /ready\n"
      expect(ask("HEAD / HTTP/1.1\r\n\r\n")).to end_with "content-length: 16\r\nconnection: close\r\n\r\n"
      expect(ask("POST / HTTP/1.1\r\n\r\n")).to start_with "HTTP/1.1 405"
    end

    it "listens on the loopback interface alone, and no longer once it is stopped" do
      expect(server.instance_variable_get(:@server).addr[3]).to eq "127.0.0.1"
      server.stop
      expect { TCPSocket.new("127.0.0.1", server.port) }.to raise_error(Errno::ECONNREFUSED)
    end

    it "is not kept by a client that says nothing" do
      silent = TCPSocket.new("127.0.0.1", server.port)

      expect(ask("GET / HTTP/1.0\r\n\r\n")).to include "you asked for /"
      silent.close
    end

    it "goes on when a client could not be taken in" do
      listening = server.instance_variable_get(:@server)
      failures = [Errno::EMFILE, Errno::ECONNABORTED]
      allow(listening).to(receive(:accept).and_wrap_original { |accept| (error = failures.shift) ? raise(error) : accept.call })

      # The first of them was waited for before.
      2.times { expect(Timeout.timeout(10) { ask("GET /live HTTP/1.1\r\n\r\n") }).to include "you asked for /live" }
      expect(failures).to eq []
    end

    context "when the application fails" do
      let(:app) { ->(_) { raise "no figures" } }

      it "says so" do
        logged = []
        allow(AceMQ::Rails.logger).to receive(:error) { |text| logged << text }

        expect(ask("GET /metrics HTTP/1.1\r\n\r\n")).to start_with "HTTP/1.1 500 Internal Server Error\r\n"
        expect(logged).to eq ["acemq: the probe could not answer: RuntimeError: no figures"]
      end
    end

    it "says that a port is taken" do
      expect { described_class.new(app, port: server.port).start }
        .to raise_error(AceMQ::AMQP::ConfigurationError, /cannot listen on 127.0.0.1:\d+: .*in use/)
    end
  end
end
