# frozen_string_literal: true

# The wrapper over the table of keys: one effect per key, whatever happens to the handler.
RSpec.describe "Idempotent work" do
  on_each_database do |name|
    before(:context) do
      make_idempotency
      make_orders
    end

    before { empty("acemq_idempotency", "orders") }

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: 300) }
    let(:ack) { AceMQ::AMQP::Ack }

    def message(id)
      AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: id))
    end

    def idempotent(store = self.store, &handler)
      AceMQ::AMQP::Patterns.idempotent(store, in_progress_delay: 0.1, &handler)
    end

    # By the stores' own way to the database: a thread that waits for a locked SQLite file in ActiveRecord's keeps all
    # others, and so the one that has the lock, from running.
    def work(id)
      connection do |db|
        AceMQ::AMQP::Patterns::Dialects.for(db).change("INSERT INTO orders (name) VALUES ('#{id}')", "work")
      end
    end

    def effects
      rows("orders", order: "id").map { |row| row["name"] }
    end

    # A connection is given back with its thread.
    def in_thread(&block)
      Thread.new { ActiveRecord::Base.connection_pool.with_connection(&block) }
    end

    it "is done once by many threads that are handed the same message" do
      handler = idempotent { |m| work(m.id) && ack.accept }
      answers = Array.new(8) { in_thread { Array.new(3) { handler.call(message("m-1")) } } }.flat_map(&:value)

      expect(effects).to eq %w[m-1]
      expect(answers.map(&:action).uniq - %i[accept in_progress]).to be_empty
      expect(handler.call(message("m-1"))).to be_accept
    end

    # Case 1: only a confirmed key is a duplicate.
    it "comes back later while somebody else is at it" do
      store.claim("m-1")
      handler = idempotent { |m| work(m.id) && ack.accept }

      expect(in_thread { handler.call(message("m-1")) }.value).to be_in_progress
      expect(effects).to be_empty
    end

    it "is one event with its key when the handler confirms in its own transaction" do
      handler = idempotent do |m|
        ActiveRecord::Base.transaction do
          work(m.id)
          store.confirm(m.id)
        end
        ack.accept
      end

      2.times { expect(handler.call(message("m-1"))).to be_accept }
      expect(effects).to eq %w[m-1]
      expect(store.confirmed?("m-1")).to be true
    end

    it "runs again after its transaction was rolled back, key and all" do
      failing = true
      handler = idempotent do |m|
        ActiveRecord::Base.transaction do
          work(m.id)
          store.confirm(m.id)
          raise "declined" if failing
        end
        ack.accept
      end

      expect { handler.call(message("m-1")) }.to raise_error("declined")
      expect(effects).to be_empty
      failing = false
      expect(handler.call(message("m-1"))).to be_accept
      expect(effects).to eq %w[m-1]
    end

    shared_examples "one effect per id" do |count|
      it "is done once per id by 50 threads that are all handed all of #{count} ids" do
        ids = Array.new(count) { |n| "m-#{n}" }
        handler = idempotent { |m| together(m.id) { work(m.id) } && ack.accept }
        answers = Array.new(50) { in_thread { ids.map { |id| handler.call(message(id)).action }.uniq } }.flat_map(&:value)

        expect(effects.tally).to eq(ids.to_h { |id| [id, 1] })
        expect(answers.uniq - %i[accept in_progress]).to be_empty
        expect(store.hit_rate.to_h).to include(first: count, taken_over: 0, lost: 0)
        expect(store.hit_rate.to_h.values.sum).to eq 50 * count
      end
    end

    # The work and its key as one event. SQLite has one transaction that writes at a time, and the threads of one process
    # cannot wait for each other's.
    def together(id)
      return yield if database == :sqlite

      ActiveRecord::Base.transaction do
        yield
        store.confirm(id)
      end
    end

    include_examples "one effect per id", 10

    describe "in the full number", :long do
      include_examples "one effect per id", 10_000
    end

    describe "by a handler that outlives its claim" do
      let(:store) { AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: 0.5) }

      # Another worker, from the moment on at which it may.
      def somebody_else(id)
        other = idempotent { |m| work("#{m.id} by another") && ack.accept }
        in_thread { eventually(10) { expect(other.call(message(id))).to be_accept } }
      end

      it "is refused its late confirm, and rolled back" do
        handler = idempotent do |m|
          somebody_else(m.id).join
          ActiveRecord::Base.transaction do
            work("#{m.id} too late")
            store.confirm(m.id)
          end
          ack.accept
        end

        expect { handler.call(message("m-1")) }.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError, /claim_timeout \(0.5 s\)/)
        expect(effects).to eq ["m-1 by another"]
        expect(store.hit_rate.to_h).to include(first: 1, taken_over: 1, lost: 1)
        expect(handler.call(message("m-1"))).to be_accept
      end

      unless name == :sqlite # which has one transaction that writes at a time
        it "is refused and rolled back, too, when its transaction was open all the time" do
          handler = idempotent do |m|
            ActiveRecord::Base.transaction do
              work("#{m.id} too late")
              rows("acemq_idempotency", order: "message_id") # what it reads stays as it is, by MariaDB's default
              somebody_else(m.id).join
              store.confirm(m.id)
            end
            ack.accept
          end

          expect { handler.call(message("m-1")) }.to raise_error(StandardError)
          expect(effects).to eq ["m-1 by another"]
        end

        # Whoever wants to take over waits for the row, and finds the work done.
        it "is done once when it has confirmed in time and commits late" do
          confirmed = Thread::Queue.new
          handler = idempotent do |m|
            ActiveRecord::Base.transaction do
              work(m.id)
              store.confirm(m.id)
              confirmed << true
              sleep 0.8 # longer than the claim would have stood
            end
            ack.accept
          end
          first = in_thread { handler.call(message("m-1")) }
          confirmed.pop
          somebody_else("m-1").join

          expect(first.value).to be_accept
          expect(effects).to eq %w[m-1]
        end
      end
    end

    it "is rolled back when its claim went stale and somebody else did it" do
      handler = idempotent do |m|
        execute("UPDATE acemq_idempotency SET recorded_at = #{sql_time(-600)}, expires_at = #{sql_time(-300)}")
        in_thread { idempotent { |same| work("#{same.id} by another") && ack.accept }.call(message(m.id)) }.join
        ActiveRecord::Base.transaction do
          work("#{m.id} too late")
          store.confirm(m.id)
        end
        ack.accept
      end

      expect { handler.call(message("m-1")) }.to raise_error(AceMQ::AMQP::Patterns::ClaimLostError)
      expect(effects).to eq ["m-1 by another"]
      expect(store.confirmed?("m-1")).to be true
    end
  end
end
