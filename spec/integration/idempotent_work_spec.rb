# frozen_string_literal: true

# The wrapper over the table of keys: one effect per key, whatever happens to the handler.
RSpec.describe "Idempotent work" do
  on_each_database do
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

    def work(id)
      execute("INSERT INTO orders (name) VALUES ('#{id}')")
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
