# frozen_string_literal: true

require "active_job"
require "acemq/rails"
require "acemq/operations"

# The checklist at the end of the article on outboxes in Rails, line by line.
RSpec.describe "The checklist for an outbox in production" do
  on_each_database do |name|
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }
    let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }
    let(:relay) { AceMQ::AMQP::Patterns::OutboxRelay.new(pipeline, store) }

    def fail_for_good(*ids)
      store.claim(100).settle(failed: ids.map { |id| [id, "broken", true] })
    end

    it "has a unique index on the key of an event, and an event that comes twice is one" do
      2.times { add("order.fulfilled.1") }
      expect(rows.size).to eq 1

      columns = "id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at, attempts"
      expect do
        execute("INSERT INTO acemq_outbox (#{columns}) VALUES ('order.fulfilled.1', '', '', '', '', '', '', #{sql_time(0)}, 0)")
      end.to raise_error(ActiveRecord::RecordNotUnique)
    end

    it "has an index of pending events alone, where the database has such, and one that begins with them elsewhere" do
      index = connection { |db| db.indexes("acemq_outbox") }.find { |one| one.name == "acemq_outbox_destination" }

      if name == :mariadb
        expect(index.columns.first).to eq "published_at"
      else
        expect(index.where).to match(/published_at IS NULL/)
      end
    end

    it "lets relays work beside each other: none waits for the rows of another, none takes them" do
      add(*Array.new(4) { |n| "e#{n}" }, routing_key: "one")
      add(*Array.new(4) { |n| "f#{n}" }, routing_key: "two")
      first = store.claim(4)
      second = described_store.claim(4)

      expect(first.records.map(&:id) & second.records.map(&:id)).to be_empty
      expect(first.records.size + second.records.size).to eq 8
    end

    it "does so in the database's words" do
      statements = []
      watch = ->(*, payload) { statements << payload[:sql] }
      add("a")
      ActiveSupport::Notifications.subscribed(watch, "sql.active_record") { store.claim(1) }

      expect(statements.join("\n")).to include "FOR UPDATE SKIP LOCKED" if name == :postgres
      expect(statements.grep(/UPDATE/).join).to match(/locked_until/) # the lease, which does the same elsewhere
    end

    it "bounds the attempts" do
      limited = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(max_attempts: 3)
      limited.add(outbox_record("a"))
      4.times { limited.claim(1, ignore_backoff: true).settle(failed: [["a", "no", false]]) }

      expect(limited.claim(1, ignore_backoff: true)).to be_empty
      expect(row("a")["attempts"].to_i).to eq 3
    end

    it "shows dead letters to whoever watches: a health check, a gauge, a page for monitors, an event" do
      add("a", "b")
      expect(AceMQ::Rails::OutboxHealthCheck.call(store)).to eq(status: :ok, dead_letter_count: 0)
      told = []
      ActiveSupport::Notifications.subscribed(->(*, payload) { told << payload[:id] }, "retire.acemq") do
        pipeline.verdict("a", AceMQ::AMQP::PublishError.new("too large", permanent: true))
        expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)
      end

      expect(told).to eq ["a"]
      expect(AceMQ::Rails::OutboxHealthCheck.call(store)).to eq(status: :degraded, dead_letter_count: 1)
      probe = AceMQ::Rails::Probe.new(relays: { "main" => relay })
      expect(probe.call("PATH_INFO" => "/outbox").first).to eq 503
      expect(probe.call("PATH_INFO" => "/metrics").last.first).to include %(acemq_outbox_retired{outbox="acemq_outbox"} 1)
    end

    it "brings dead letters back once what was broken is mended: one, or all" do
      add("a", "b", "c")
      fail_for_good("a", "b", "c")
      expect(store.retry!("a")).to eq 1
      expect(relay.sweep).to eq 1
      expect(store.retry!).to eq 2
      expect(relay.sweep).to eq 2
    end

    it "guards against large payloads: 256 KB, with the size and the limit in the error" do
      expect { add("a", body: "x" * (256 * 1024)) }.not_to raise_error
      expect { add("b", body: "x" * ((256 * 1024) + 1)) }.to raise_error(ArgumentError, /262145 bytes .* takes 262144/)
    end

    it "rolls the business transaction back over one, as any error of the event does" do
      make_orders
      expect do
        ActiveRecord::Base.transaction do
          ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('x')")
          add("b", body: "x" * 300_000)
        end
      end.to raise_error(ArgumentError)
      expect([rows.size, rows("orders", order: "id").size]).to eq [0, 0]
    end

    it "prunes: a job that removes what was published 30 days ago, and nothing else" do
      add("old", "new", "pending", "dead")
      store.mark_published(%w[old new])
      fail_for_good("dead")
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-31 * 86_400)} WHERE id = 'old'")
      execute("UPDATE acemq_outbox SET created_at = #{sql_time(-40 * 86_400)}")

      AceMQ::Rails::OutboxPruneJob.new.perform
      expect(rows.map { |row| row["id"] }).to match_array %w[new pending dead]
    end

    it "asks for idempotent consumers, and has what they need" do
      store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
      done = []
      handler = AceMQ::AMQP::Patterns.idempotent(store) { |message| done << message.id && AceMQ::AMQP::Ack.accept }
      message = AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: "order.fulfilled.1"))
      2.times { expect(handler.call(message)).to be_accept }

      expect(done).to eq ["order.fulfilled.1"]
      expect(File.read(File.expand_path("../../docs/outbox.md", __dir__))).to match(/Consumers therefore have to be idempotent/)
    end

    def described_store
      AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
    end
  end
end
