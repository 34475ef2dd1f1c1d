# frozen_string_literal: true

require "active_job"
require "acemq/rails"
require "acemq/operations"

RSpec.describe "recurring jobs", :broker do
  around do |example|
    former = [ActiveJob::Base.queue_adapter, ActiveJob::Base.logger]
    ActiveJob::Base.queue_adapter = :inline
    ActiveJob::Base.logger = Logger.new(IO::NULL)
    example.run
  ensure
    ActiveJob::Base.queue_adapter, ActiveJob::Base.logger = former
  end

  on_each_database(:sqlite, :postgres) do
    before(:context) do
      make_outbox
      make_idempotency
    end

    before do
      empty("acemq_outbox", "acemq_idempotency")
      AceMQ::Rails.connection = open_connection
    end

    let(:queue) { new_queue(open_connection) }

    describe AceMQ::Rails::OutboxRelayJob do
      it "publishes what is there, in as many batches as it takes" do
        7.times { |n| put("m-#{n}", to: queue) }
        described_class.perform_later(batch: 3)

        expect(marked.size).to eq 7
        expect(ids_in(open_connection, queue)).to eq(Array.new(7) { |n| "m-#{n}" })
      end

      it "fails with what could not be published, after everything else, and does not hammer it" do
        put("stuck", to: "nobody.consumes.this")
        put("fine", to: queue)

        expect { described_class.perform_now }.to raise_error(AceMQ::AMQP::PublishError, /no queue/)
        expect(marked).to eq %w[fine]
        expect(described_class.perform_now).to eq 0 # it is in backoff
        expect(charged).to eq("stuck" => 1)
      end

      it "leaves attempts to later turns where the store knows no backoff" do
        plain = Class.new do
          attr_reader :failed

          def initialize(record) = (@record = record) && (@failed = 0)
          def add(*) = nil
          def pending(*) = [@record]
          def mark_published(*) = nil
          def mark_failed(*) = @failed += 1
        end.new(outbox_record("a", exchange: "", routing_key: "nobody.consumes.this"))
        job = Class.new(described_class) { define_method(:store) { plain } }

        expect { job.perform_now }.to raise_error(AceMQ::AMQP::PublishError)
        expect(plain.failed).to eq 1
      end

      it "fails without a broker, and charges nobody" do
        put("waits", to: queue)
        without_broker

        expect { described_class.perform_now }.to raise_error(AceMQ::AMQP::TransportError)
        expect([charged, leased]).to eq [{}, []]
      end

      it "ends in time for the next one" do
        5.times { |n| put("m-#{n}", to: queue) }

        expect(described_class.perform_now(seconds: -1, batch: 2)).to eq 0
        expect(marked).to be_empty
      end

      it "takes another outbox, and another queue, from a subclass" do
        make_outbox(:ours, name: "events")
        other = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(table: "events")
        job = Class.new(described_class) do
          queue_as :outbox
          define_method(:store) { other }
        end
        other.add(outbox_record("a", exchange: "", routing_key: queue))

        expect(job.perform_now).to eq 1
        expect(job.new.queue_name).to eq "outbox"
      end
    end

    describe AceMQ::Rails::OutboxPruneJob do
      before do
        store = outbox
        %w[old new].each { |id| put(id, to: queue) }
        store.mark_published(%w[old new])
        execute("UPDATE acemq_outbox SET published_at = #{sql_time(-31 * 86_400)} WHERE id = 'old'")
        AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new.first_time?("expired")
        execute("UPDATE acemq_idempotency SET expires_at = #{sql_time(-5)}")
      end

      it "removes what is past its time" do
        expect(described_class.perform_now).to eq("acemq_outbox" => 1, "acemq_idempotency" => 1)
        expect(rows.map { |row| row["id"] }).to eq %w[new]
      end

      it "keeps as much as it is told, and does without a table of keys" do
        connection { |db| db.drop_table(:acemq_idempotency) }
        AceMQ::AMQP::Patterns::Database::TABLES.clear

        expect(described_class.perform_now(older_than: 40 * 86_400)).to eq("acemq_outbox" => 0)
      ensure
        make_idempotency
      end
    end

    describe AceMQ::Rails::OutboxHealthCheck do
      it "is degraded by rows that will not be tried again" do
        expect(described_class.call).to eq(status: :ok, dead_letter_count: 0)
        put("broken", to: queue)
        execute("UPDATE acemq_outbox SET attempts = 10")
        expect(described_class.call).to eq(status: :degraded, dead_letter_count: 1)
        outbox.retry!

        expect(described_class.call(outbox)).to eq(status: :ok, dead_letter_count: 0)
      end
    end
  end
end
