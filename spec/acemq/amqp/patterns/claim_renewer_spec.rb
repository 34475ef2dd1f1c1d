# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ClaimRenewer do
  let(:ack) { AceMQ::AMQP::Ack }

  def message(id)
    AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: id))
  end

  def threads
    Thread.list.select { |thread| thread.name == described_class::NAME }
  end

  def during(renewal, lease: 0.3, limit: 60, &block)
    described_class.instance.during(renewal, lease: lease, limit: limit, &block)
  end

  # Renews, and says so.
  def renewing(queue)
    -> { (queue << Thread.current) && true }
  end

  it "renews while the handler runs, and not a moment longer" do
    renewals = Thread::Queue.new

    expect(during(renewing(renewals)) { 3.times { renewals.pop } && :answer }).to eq :answer
    renewals.clear
    sleep 0.25 # as long as two renewals would take
    expect(renewals).to be_empty
  end

  it "does so for many handlers with one thread" do
    renewals = Thread::Queue.new
    handlers = Array.new(10) do
      own = Thread::Queue.new
      Thread.new { during(-> { (own << true) && (renewals << Thread.current) && true }) { 2.times { own.pop } } }
    end
    handlers.each(&:join)

    expect(Array.new(renewals.size) { renewals.pop }.uniq).to eq threads
    expect(threads.size).to eq 1
  end

  it "stops at its limit, and when the claim is lost" do
    limited = Thread::Queue.new
    lost = Thread::Queue.new
    during(renewing(limited), lease: 0.1, limit: 0.2) do
      during(-> { (lost << true) && false }, lease: 0.1) { sleep 0.6 }
    end

    expect(limited.size).to be_between(1, 6)
    expect(lost.size).to eq 1
  end

  it "tries again when a renewal fails, and says so" do
    answers = [-> { raise IOError, "no database" }, -> { true }]
    done = Thread::Queue.new

    expect do
      during(-> { answers.shift&.call.tap { done << true } || true }) { done.pop }
    end.to output(/could not be renewed and is tried again: no database \(IOError\)/).to_stderr
    expect(answers).to be_empty
  end

  it "looks again soon where a renewal cannot be made yet" do
    asked = Thread::Queue.new

    during(-> { (asked << true) && :later }, lease: 2, limit: 2) do
      eventually { expect(asked.size).to be > 4 } # every third of the lease, there would be two before the limit
    end
  end

  it "ends with the renewal that is under way, so that none comes after the handler's own confirm" do
    entered = Thread::Queue.new
    ended = false
    slow = lambda do
      entered << true
      sleep 0.2
      ended = true
    end
    during(slow, lease: 0.06) { entered.pop }

    expect(ended).to be true
  end

  it "begins anew in a forked child, which renews nothing of its parent's" do
    of_parent = Thread::Queue.new
    reader, writer = IO.pipe
    during(renewing(of_parent)) do
      of_parent.pop
      pid = fork do
        inherited = of_parent.size
        own = Thread::Queue.new
        during(renewing(own)) { own.pop }
        writer.write(Marshal.dump([of_parent.size - inherited, threads.size]))
        exit!(0)
      end
      Process.wait(pid)
    end
    writer.close

    expect(Marshal.load(reader.read)).to eq [0, 1] # rubocop:disable Security/MarshalLoad -- our own
  end

  describe "by the wrapper" do
    on_each_database do
      include AceMQ::SpecSupport::Keys

      before do
        make_idempotency
        make_orders
        ActiveRecord::Base.connection_pool.release_connection
      end

      let(:store) { AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: 2) }

      def expires
        value("SELECT expires_at FROM acemq_idempotency").to_s
      end

      def work(id)
        execute("INSERT INTO orders (name) VALUES ('#{id}')")
      end

      def handler(**options, &after)
        AceMQ::AMQP::Patterns.idempotent(store, **options) do |m|
          after.call
          work(m.id)
          ack.accept
        end
      end

      # A handler of more than a claim's length, looked at by others all the time.
      it "keeps a long handler's claim" do
        answers = []
        long = handler(renew_for: 60) { 12.times { sleep(0.25) && answers << elsewhere { store.claim("m-1") } } }

        expect(long.call(message("m-1"))).to be_accept
        expect(answers.uniq).to eq [:in_progress]
        expect(rows("orders", order: "id").map { |row| row["name"] }).to eq %w[m-1]
        expect(elsewhere { store.claim("m-1") }).to eq :duplicate
      end

      # Case 24.
      it "holds no connection of the pool between renewals" do
        busy = []
        handler(renew_for: 60) do
          before = expires
          eventually(5) { expect(expires).not_to eq before }
          eventually(5) { expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0 }
          busy = Array.new(10) { sleep(0.01) && ActiveRecord::Base.connection_pool.stat[:busy] }
        end.call(message("m-1"))

        expect(busy.uniq).to eq [0]
        expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
      end

      it "does not renew unless it is told to" do
        before = after = nil
        handler do
          before = expires
          sleep 1 # longer than until the first renewal
          after = expires
        end.call(message("m-1"))

        expect(after).to eq before
      end
    end

    it "asks a store that can, and seconds" do
      store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new

      expect { AceMQ::AMQP::Patterns.idempotent(store, renew_for: 60) { ack.accept } }
        .to raise_error(ArgumentError, /InMemoryIdempotencyStore cannot renew a claim: it does not answer renewal/)
      expect { AceMQ::AMQP::Patterns.idempotent(store, renew_for: true) { ack.accept } }
        .to raise_error(ArgumentError, /renew_for: must be seconds above 0, not true/)
    end
  end
end
