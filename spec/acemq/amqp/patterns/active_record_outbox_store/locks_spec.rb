# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "and other people's transactions" do
  subject(:store) { described_class.new }

  # A transaction that has added a row and stays open while the block runs.
  def beside_an_open_transaction
    added = Queue.new
    finish = Queue.new
    business = Thread.new do
      ActiveRecord::Base.transaction do
        described_class.new.add(outbox_record("uncommitted"))
        added << true
        finish.pop
      end
      ActiveRecord::Base.connection_pool.release_connection
    end
    added.pop
    yield
  ensure
    finish << true
    business.join
  end

  def fill(*ids)
    ActiveRecord::Base.transaction { add(*ids) }
    ActiveRecord::Base.connection_pool.release_connection
  end

  before { allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds).and_return(60) }

  on_each_database(:postgres, :mariadb) do |name|
    # Whoever waits for the open transaction fails instead of hanging.
    before(:context) do
      ActiveRecord::Base.remove_connection
      limit = name == :mariadb ? { innodb_lock_wait_timeout: 1 } : { lock_timeout: "1s" }
      AceMQ::SpecSupport::Database.connect(name, variables: limit)
    end

    %i[ours application].each do |origin|
      describe "on a table of origin #{origin}" do
        before(:context) { make_outbox(origin) }
        before { empty("acemq_outbox") }

        it "does not wait for them in anything that a relay does" do
          ids = Array.new(20) { |i| format("%02d", i) }
          fill(*ids)

          beside_an_open_transaction do
            claim = store.claim(12)
            expect(claim.records.size).to eq 12
            expect(claim.renew).to eq 12
            claim.settle(confirmed: ids[0, 4], failed: [[ids[4], "x", false], [ids[5], "x", true]], held: [[ids[6], "y"]],
                         unsent: ids[7, 5])
            expect(store.mark_published(ids[12, 2])).to eq 2
            expect(store.retry!).to eq 1
            expect(store.purge_published(-5)).to eq 6
            expect(store.pending_count).to eq 14
            expect(store.claim(5, ordering: :strict).records.size).to eq 0
            expect(store.claim(5, ordering: :none).records.size).to eq 5
          end
          expect(store.pending_count).to eq 15
        end

        it "does not make them wait" do
          fill("a", "b")
          store.claim(1)

          beside_an_open_transaction { store.claim(10) }
          expect(row("uncommitted")).to be
        end
      end
    end

    it "gets into no deadlock with writers" do
      make_outbox(:application)
      errors = Queue.new
      stop = false
      writers = Array.new(3) do
        Thread.new do
          until stop
            ActiveRecord::Base.transaction { 5.times { store.add(outbox_record(routing_key: "k#{rand(4)}")) } }
            ActiveRecord::Base.connection_pool.release_connection
          end
        rescue StandardError => e
          errors << e
        end
      end
      relays = Array.new(2) do
        Thread.new do
          40.times do
            claim = store.claim(100)
            ids = claim.records.map(&:id)
            claim.settle(confirmed: ids.first(50), unsent: ids.drop(50))
            store.purge_published(-5, batch: 50)
          end
        rescue StandardError => e
          errors << e
        end
      end
      relays.each(&:join)
      stop = true
      writers.each(&:join)

      expect(Array.new(errors.size) { errors.pop }).to eq []
    end
  end

  on_each_database(:postgres) do
    it "skips a row that somebody has locked, and what comes after it" do
      make_outbox
      fill("a", "b", "c")
      ActiveRecord::Base.transaction do
        ActiveRecord::Base.connection.execute("SELECT * FROM acemq_outbox WHERE id = 'b' FOR UPDATE")
        expect(Thread.new { claimed_ids }.value).to eq ["a"]
      end
      ActiveRecord::Base.connection_pool.release_connection
    end
  end
end
