# frozen_string_literal: true

require "json"
require "net/http"
require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq doctor --management", :broker do
  describe "beside a broker with the plugin" do
    before(:context) do
      AceMQ::SpecSupport::Database.connect(:sqlite)
      make_outbox
      connection { |db| db.drop_table(:acemq_idempotency, if_exists: true) }
      @port, = AceMQ::TestServers::Server.free_ports(1)
      @rabbitmq = AceMQ::TestServers.new_rabbitmq(plugins: %w[rabbitmq_management],
                                                  settings: { "management.tcp.port" => @port, "management.tcp.ip" => "127.0.0.1" })
      @rabbitmq.start
      eventually(30) { expect { set("vhosts/team%2Fshop") }.not_to raise_error }
      set("users/relay", password: "s3 cret", tags: "")
      set("users/monitor", password: "secret", tags: "monitoring")
      permit("relay", write: "^shop")
      permit("guest", write: ".*")
    end

    after(:context) do
      @rabbitmq.dispose
      AceMQ::SpecSupport::Database.disconnect
    end

    before do
      empty("acemq_outbox")
      allow(AceMQ::Rails).to receive(:config).and_return(AceMQ::Rails::Configuration.new(url: url))
      AceMQ::Rails.connection = open_connection(url)
    end

    let(:url) { @rabbitmq.url(user: "relay", password: "s3%20cret", vhost: "team%2Fshop") }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }
    let(:management) { +"http://guest:guest@127.0.0.1:#{@port}" }
    let(:owner) { open_connection(@rabbitmq.url(vhost: "team%2Fshop")) }

    # @param body [Hash] of a PUT to the plugin, which is quicker than rabbitmqctl
    def set(path, **body)
      request = Net::HTTP::Put.new("/api/#{path}", "content-type" => "application/json")
      request.basic_auth("guest", "guest")
      request.body = JSON.generate(body)
      Net::HTTP.start("127.0.0.1", @port) { |http| http.request(request) }.value
    end

    def permit(user, write:, configure: ".*", read: ".*")
      set("permissions/team%2Fshop/#{user}", configure: configure, write: write, read: read)
    end

    def divert(exchange, to:)
      set("policies/team%2Fshop/#{exchange}", pattern: "^#{exchange}$", "apply-to" => "exchanges",
                                              definition: { "alternate-exchange" => to })
    end

    def findings
      run = acemq("doctor", "--json", "--management", management)
      run.json.map { |one| one.values_at(:subject, :verdict, :text) }
    end

    it "tells the broker's version, what the user may do, and which routing keys reach a queue" do
      owner.declare_exchange("shop-topic", kind: "topic")
      owner.declare_exchange("shop-direct", kind: "direct")
      owner.declare_exchange("shop-fallback", kind: "direct", arguments: { "alternate-exchange" => "shop-topic" })
      owner.declare_exchange("billing", kind: "fanout")
      owner.declare_queue("shop.all", queue_type: :classic)
      owner.bind(queue: "shop.all", exchange: "shop-topic", routing_key: "order.*.v2")
      owner.bind(queue: "shop.all", exchange: "shop-topic", routing_key: "invoice.#")
      owner.bind(queue: "shop.all", exchange: "shop-direct", routing_key: "order.placed")
      { "shop-topic" => %w[order.placed.v2 order.placed invoice invoice.paid.late], "shop-direct" => %w[order.placed order.paid],
        "shop-fallback" => %w[x], "billing" => %w[y] }.each do |exchange, keys|
        keys.each { |key| add("#{exchange}-#{key}", exchange: exchange, routing_key: key) }
      end

      expect(findings).to include(
        ["broker", "ok", match(/\ARabbitMQ [34]\.\d+.*Erlang/)],
        ["permissions", "ok", "relay may publish to shop-topic"],
        ["permissions", "error", 'relay may not publish to billing: its permission to write is "^shop"'],
        ["destination shop-topic/order.placed.v2", "ok", "reaches queue shop.all"],
        ["destination shop-topic/invoice", "ok", "reaches queue shop.all"],
        ["destination shop-topic/invoice.paid.late", "ok", "reaches queue shop.all"],
        ["destination shop-topic/order.placed", "error", "no queue is bound for it"],
        ["destination shop-direct/order.placed", "ok", "reaches queue shop.all"],
        ["destination shop-direct/order.paid", "error", "no queue is bound for it"],
        ["destination shop-fallback/x", "ok", "reaches the alternate exchange shop-topic"],
        ["destination billing/y", "error", "no queue is bound for it"]
      )
    end

    it "knows that an empty permission permits nothing" do
      permit("relay", write: "")
      owner.declare_exchange("shop-topic", kind: "topic")
      add("a", exchange: "shop-topic")
      add("b", exchange: "", routing_key: "shop.all")

      expect(findings).to include(
        ["permissions", "error", 'relay may not publish to shop-topic: its permission to write is "^$"'],
        ["permissions", "error", 'relay may not publish to amq.default: its permission to write is "^$"']
      )
    ensure
      permit("relay", write: "^shop")
    end

    it "respects that nobody need consume some events, and what an alternate exchange takes" do
      owner.declare_exchange("shop-audit", kind: "fanout")
      owner.declare_exchange("shop-rest", kind: "direct")
      owner.declare_exchange("shop-strict", kind: "direct")
      divert("shop-rest", to: "shop-audit")
      %w[audit rest strict].each { |name| add(name, exchange: "shop-#{name}", routing_key: "x") }
      add("old", exchange: "shop-strict", routing_key: "old")
      store.mark_published("old")
      relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store, mandatory: ["shop-audit"])
      allow(AceMQ::Rails::Relays).to receive(:kept).and_return([relay])

      expect(findings).to include(
        ["destination shop-audit/x", "ok", "no queue is bound for it, and the relay is told that none need be"],
        ["destination shop-rest/x", "ok", "reaches the alternate exchange shop-audit"],
        ["destination shop-strict/x", "error", "no queue is bound for it"],
        ["destination shop-strict/old", "warning", "no queue is bound for it; nothing waits for it now"]
      )
    end

    it "says what a user with no more than the tag monitoring may not see, and all the rest" do
      management.sub!("guest:guest", "monitor:secret")
      owner.declare_exchange("shop-topic", kind: "topic")
      owner.declare_exchange("shop-hidden", kind: "direct")
      divert("shop-hidden", to: "shop-topic")
      add("a", exchange: "shop-topic", routing_key: "nobody")
      add("b", exchange: "shop-hidden")
      outside = ["destinations", "warning", match(/could not be looked at \(HTTP 401\): monitor has no permission in .* team.shop/)]

      expect(findings).to include(outside)
      permit("monitor", configure: "", write: "", read: "")
      expect(findings).to include(
        ["broker", "ok", start_with("RabbitMQ")],
        ["permissions", "warning", match(/could not be looked at \(HTTP 401\): .* users with the tag administrator/)],
        ["destination shop-topic/nobody", "error", "no queue is bound for it"],
        ["destination shop-hidden/order.placed", "warning", match(/unless the policy shop-hidden, which users with the tag policymaker/)]
      )
    end

    it "says what is missing when it is not let in, without its password" do
      run = acemq("doctor", "--management", management.sub("guest:guest", "guest:hunter2"))

      expect(run.out).to match(/^WARN  management: 127.0.0.1:#{@port} does not answer: HTTP 401/)
      expect(run.out).not_to include "hunter2"
    end
  end

  it "says that nothing answers there, and what is no address" do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    without_broker

    expect(acemq("doctor", "--management", "http://127.0.0.1:1").out).to match(/^WARN  management: 127.0.0.1:1 does not answer: .*refused/)
    expect(acemq("doctor", "--management", "amqp://here")).to have_attributes(code: 64, err: /must be http or https/)
  ensure
    AceMQ::SpecSupport::Database.disconnect
  end

  describe AceMQ::Operations::Doctor::BrokerUser do
    it "is read from the settings" do
      { { url: "amqp://shop:x%40y@a:5672,b/team%2Fa?heartbeat=3" } => ["shop", "team/a"], { url: "amqp://host" } => ["guest", "/"],
        { url: "amqps://host:5671/", virtual_host: "v", username: "u", password: "p" } => %w[u v],
        { url: "amqp://a%20b:c@host/%2F" } => ["a b", "/"] }.each do |settings, expected|
        expect(described_class.of(AceMQ::Rails::Configuration.new(settings)).to_a).to eq expected
      end
    end
  end
end
