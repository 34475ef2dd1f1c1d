# frozen_string_literal: true

require "digest"
require "json"

# From rows in a table to messages in a queue, byte for byte.
RSpec.describe "The outbox on the real broker", :broker do
  bodies = {
    json: { "order_id" => "A-1", "customer" => "J\u00FCrgen \u{1F4E6}" }.to_json,
    binary: (0..255).map(&:chr).join.b * 4,
    empty: "",
    nul: "a\u0000b",
    plain: "plain text"
  }
  big = Random.new(7).bytes(512 * 1024).unpack1("H*")

  rows_wanted = ENV["ACEMQ_LONG"] == "1" ? 10_000 : 1_000
  big_ones = ENV["ACEMQ_LONG"] == "1" ? 500 : 10

  on_each_database do |name|
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }

    def raw(body, id, queue)
      AceMQ::AMQP::Patterns.record(recorder, body, to: queue, id: id, codec: AceMQ::AMQP::BytesCodec.new)
    end

    it "brings #{rows_wanted} rows to a durable queue, each at least once and byte for byte, and marks them" do
      queue = new_queue(amqp)
      sent = {}
      rows_wanted.times.each_slice(500) do |slice|
        ActiveRecord::Base.transaction do
          slice.each do |n|
            kind = n < big_ones ? :big : bodies.keys[n % bodies.size]
            body = kind == :big ? big : bodies.fetch(kind)
            record = raw(body, "m-#{n}", queue)
            sent[record.id] = Digest::SHA256.hexdigest(body.b)
            outbox.add(record)
          end
        end
      end
      relay = new_relay(amqp, batch: 500)
      published = 0
      eventually(120) { expect(published += relay.sweep).to eq rows_wanted }

      received = drain(amqp, queue)
      expect(received.map(&:message_id).uniq.size).to eq rows_wanted
      expect(received.to_h { |delivery| [delivery.message_id, Digest::SHA256.hexdigest(delivery.body.b)] }).to eq sent
      expect(value("SELECT COUNT(*) FROM acemq_outbox WHERE published_at IS NULL OR locked_by IS NOT NULL").to_i).to eq 0
    end

    it "sends what a direct publish sends" do
      queue = new_queue(amqp)
      payload = { "id" => 1, "at" => Time.utc(2026, 1, 2, 3, 4, 5.678r), "price" => BigDecimal("1.10"), "n" => nil }
      fields = { id: "m-1", type: "order.placed.v2", correlation_id: "c-1", causation_id: "m-0", version: 3,
                 first_seen: Time.at(1_695_967_029, 250, :millisecond),
                 headers: { "tenant" => "acme", "count" => 7, "ratio" => 0.5, "vip" => true, "none" => nil } }
      amqp.publish(payload, to: queue, **fields)
      outbox.add(AceMQ::AMQP::Patterns.record(amqp, payload, to: queue, **fields))
      new_relay(amqp).sweep

      direct, relayed = drain(amqp, queue)
      compared = %i[body content_type routing_key message_id headers reply_to]
      expect(relayed.to_h.slice(*compared)).to eq direct.to_h.slice(*compared)
      expect(relayed.headers).to include("x-acemq-first-seen" => 1_695_967_029_250, "tenant" => "acme")
    end

    it "keeps the order in which one writer added, within a destination" do
      queue = new_queue(amqp)
      ActiveRecord::Base.transaction { 200.times { |n| put("o-#{n}", to: queue) } }
      relay = new_relay(amqp, batch: 30).start
      eventually(30) { expect(outbox.pending_count).to eq 0 }
      relay.close

      expect(ids_in(amqp, queue)).to eq(Array.new(200) { |n| "o-#{n}" })
    end

    it "publishes what was committed, and nothing that was rolled back" do
      queue = new_queue(amqp)
      relay = new_relay(amqp, interval: 0.05).start
      # Two threads of an application that write to SQLite lock each other out by themselves.
      writers = name == :sqlite ? 1 : 4
      threads = Array.new(writers) do |writer|
        Thread.new do
          25.times do |n|
            ActiveRecord::Base.transaction do
              put("w#{writer}-#{n}", to: queue)
              raise ActiveRecord::Rollback if n.odd?
            end
            ActiveRecord::Base.connection_handler.clear_active_connections!
          end
        end
      end
      threads.each(&:join)
      committed = Array.new(writers) { |w| Array.new(13) { |n| "w#{w}-#{n * 2}" } }.flatten
      eventually(30) { expect(marked).to match_array(committed) }
      relay.close

      expect(ids_in(amqp, queue)).to match_array(committed)
    end

    it "shares a table between relays without sending anything twice" do
      queue = new_queue(amqp)
      ActiveRecord::Base.transaction { 300.times { |n| put("s-#{n}", to: queue) } }
      relays = Array.new(3) { new_relay(open_connection, batch: 20, interval: 0.05).start }
      eventually(30) { expect(outbox.pending_count).to eq 0 }
      relays.each(&:close)

      expect(ids_in(amqp, queue).size).to eq 300
    end

    it "holds no connection of the pool while it sleeps, and sees what other processes commit" do
      relay = new_relay(amqp, interval: 0.05).start
      queue = new_queue(amqp)
      put("p-1", to: queue)
      eventually { expect(marked).to eq %w[p-1] }
      thread = Thread.list.find { |one| one.name == "acemq-relay" }

      eventually { expect(ActiveRecord::Base.connection_pool.connections.map(&:owner)).not_to include(thread) }
      relay.close
    end
  end

  it "keeps no more on its way than in_flight_bytes" do
    AceMQ::SpecSupport::Database.connect(:sqlite)
    make_outbox
    proxy = new_proxy
    amqp = open_connection(proxy.url(broker.url))
    queue = new_queue(amqp)
    store = outbox
    relay = new_relay(amqp, store, batch: 100, in_flight_bytes: 3 * 1024 * 1024, confirm_timeout: 20)
    store.add(AceMQ::AMQP::Patterns.record(recorder, "first", to: queue))
    relay.sweep # the link has proved itself: from now on the window is open
    20.times { store.add(AceMQ::AMQP::Patterns.record(recorder, big, to: queue)) }

    before = proxy.upstream
    sweeping = nil
    holding_answers(proxy) do
      sweeping = Thread.new { relay.sweep }
      eventually { expect(proxy.upstream - before).to be > 2 * 1024 * 1024 }
      grown = nil
      eventually { expect((grown == (grown = proxy.upstream)) || (sleep(0.2) && false)).to be true }
      expect(proxy.upstream - before).to be < 3.2 * 1024 * 1024
    end

    expect(sweeping.value).to be_positive
    eventually(30) { relay.sweep && expect(store.pending_count).to(eq(0)) }
  ensure
    AceMQ::SpecSupport::Database.disconnect
  end
end
