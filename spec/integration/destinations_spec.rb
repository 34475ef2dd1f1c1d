# frozen_string_literal: true

# Destinations that cannot be reached, beside others that can.
RSpec.describe "An unreachable destination", :broker do
  on_each_database do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:relay) { new_relay(amqp) }
    let(:good) { new_queue(amqp) }
    let(:exchange) { "spec.#{SecureRandom.hex(4)}" }
    let(:missing) { "nosuch.#{SecureRandom.hex(4)}" }

    def topic_exchange(**options)
      amqp.declare_exchange(exchange, kind: "topic", auto_delete: true, **options)
      # An exchange without any binding is not deleted by itself.
      amqp.bind(queue: new_queue(amqp), exchange: exchange, routing_key: "kept.alive")
    end

    # A queue that takes one message and nacks the next.
    def full_queue
      new_queue(amqp, arguments: { "x-max-length" => 1, "x-overflow" => "reject-publish" }).tap do |queue|
        amqp.publish("full", to: queue)
      end
    end

    def put_all(destinations)
      ActiveRecord::Base.transaction { destinations.each { |id, (exchange, key)| put(id, exchange: exchange, to: key) } }
    end

    # Case 4: one bad destination in a batch.
    [[0], [5], [9], [2, 7]].each do |bad|
      it "costs nobody else anything when row #{bad.map(&:succ).join(" and ")} of 10 names an exchange that is not there" do
        put_all(Array.new(10) { |n| ["r-#{n}", bad.include?(n) ? ["#{missing}-#{n}", "k"] : ["", good]] })

        expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, /nosuch/)

        bad_ids = bad.map { |n| "r-#{n}" }
        expect(marked).to match_array(Array.new(10) { |n| "r-#{n}" } - bad_ids)
        expect(charged).to eq(bad_ids.to_h { |id| [id, 1] })
        expect(rows.filter_map { |row| row["last_error"] }).to match(bad.map { |n| /#{missing}-#{n}/ })
        expect(leased).to be_empty
        expect(ids_in(amqp, good)).to include(*(Array.new(10) { |n| "r-#{n}" } - bad_ids))

        put("after", to: good)
        sweep_quietly(relay)
        expect(marked).to include "after"
      end
    end

    # Case 8: nothing is bound.
    it "holds what no queue is bound for, by its head, until the binding exists; then all of it goes in order" do
      topic_exchange
      put_all("u-1" => [exchange, "order.placed"], "g-1" => ["", good], "u-2" => [exchange, "order.placed"],
              "u-3" => [exchange, "order.placed"], "g-2" => ["", good])

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError) { |error|
        expect(error).to be_unroutable.and have_attributes(exchange: exchange, routing_key: "order.placed")
      }
      expect(marked).to eq %w[g-1 g-2]
      expect(charged).to eq("u-1" => 1)
      expect(row("u-1")["last_error"]).to include(exchange, "order.placed")
      expect(leased).to be_empty

      late = new_queue(amqp)
      amqp.bind(queue: late, exchange: exchange, routing_key: "order.*")
      expect(relay.sweep).to eq 3
      expect(ids_in(amqp, late)).to eq %w[u-1 u-2 u-3]
    end

    it "counts what an alternate exchange takes as delivered" do
      fallback = "#{exchange}.rest"
      amqp.declare_exchange(fallback, kind: "fanout", auto_delete: true)
      amqp.bind(queue: good, exchange: fallback)
      topic_exchange(arguments: { "alternate-exchange" => fallback })
      put("a-1", exchange: exchange, to: "nobody")

      expect(relay.sweep).to eq 1
      expect(ids_in(amqp, good)).to eq %w[a-1]
    end

    it "counts what nobody need consume as published when told so" do
      topic_exchange
      put("n-1", exchange: exchange, to: "nobody")

      expect(new_relay(amqp, mandatory: [exchange]).sweep).to eq 1
      expect(marked).to eq %w[n-1]
    end

    it "holds what a queue nacks" do
      full = full_queue
      put_all("n-1" => ["", full], "g-1" => ["", good], "n-2" => ["", full])

      expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError, &:nacked?)
      expect(marked).to eq %w[g-1]
      expect(charged).to eq("n-1" => 1)

      drain(amqp, full)
      sweep_quietly(relay)
      expect(marked).to include "n-1"
    end

    # Each kind of failure holds its own destination alone, and none of them is ever retired for it.
    it "keeps missing, unbound and full destinations apart, however often they are tried" do
      topic_exchange
      full = full_queue
      put_all("m-1" => [missing, "k"], "u-1" => [exchange, "nobody"], "f-1" => ["", full], "m-2" => [missing, "k"],
              "u-2" => [exchange, "nobody"], "f-2" => ["", full], "g-1" => ["", good])
      12.times { sweep_quietly(relay) }

      expect(marked).to eq %w[g-1]
      expect(charged.keys).to match_array(%w[m-1 u-1 f-1])
      expect(charged.values).to all(eq(outbox.max_attempts - 1))
      expect(outbox.retired_count).to eq 0
      expect(outbox.held.keys).to match_array([[missing, "k"], [exchange, "nobody"], ["", full]])
    end

    it "is honoured in its pause by the thread, told of once, and sent when it can be" do
      topic_exchange
      relay = new_relay(amqp, interval: 0.05, on_error: lambda { |error, exchange:, routing_key:|
        reported << [error.class, exchange, routing_key]
      }).start
      put("t-1", exchange: exchange, to: "order.placed")
      eventually { expect(charged).to eq("t-1" => 1) }
      put("t-2", to: good)
      eventually { expect(marked).to eq %w[t-2] }

      late = new_queue(amqp)
      amqp.bind(queue: late, exchange: exchange, routing_key: "order.*")
      eventually(30) { expect(marked).to match_array(%w[t-1 t-2]) }
      expect(relay.state.name).to eq :idle
      expect(Array.new(reported.size) { reported.pop }).to eq [[AceMQ::AMQP::PublishError, exchange, "order.placed"]]
    end

    # The second part of case 14.
    it "does not keep the rows behind it waiting for a lease" do
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 60)
      put_all([["x-0", [missing, "k"]]] + Array.new(19) { |n| ["x-#{n + 1}", ["", good]] })
      new_relay(amqp, store, interval: 0.1).start

      eventually(5) { expect(marked.size).to eq 19 }
    end

    it "stops everything behind it with ordering: :strict, and is retired at the ceiling" do
      store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(max_attempts: 3)
      relay = new_relay(amqp, store, ordering: :strict)
      put_all("s-1" => ["", good], "s-2" => [missing, "k"], "s-3" => ["", good])
      3.times { expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError) }

      expect(marked).to eq %w[s-1]
      expect(store.retired.map(&:id)).to eq %w[s-2]
      expect(relay.sweep).to eq 1
      expect(ids_in(amqp, good)).to eq %w[s-1 s-3]

      expect(store.retry!).to eq 1
      amqp.declare_exchange(missing, kind: "fanout", auto_delete: true)
      amqp.bind(queue: good, exchange: missing)
      expect(relay.sweep).to eq 1
    end
  end
end
