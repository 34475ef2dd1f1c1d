# frozen_string_literal: true

# Handlers of an effect that must happen once, in processes that die in the middle of it.
RSpec.describe "Handlers that die" do
  let(:amqp) { open_connection }
  let(:queue) { consumed_queue }

  def consumed_queue
    new_queue(amqp).tap do |name|
      cleanups << -> { %w[dlq parked].each { |suffix| amqp.delete_queue("#{name}.#{suffix}") } }
    end
  end

  def publish(*ids)
    ids.each { |id| amqp.publish({}, to: queue, id: id) }
  end

  # One row each time that the work of a message was done.
  def effects
    rows("orders", order: "id").map { |row| row["name"] }
  end

  def left
    ["", ".dlq", ".parked"].map { |suffix| amqp.message_count("#{queue}#{suffix}") }
  end

  on_each_database do
    before(:context) do
      make_idempotency
      make_orders
    end

    before { empty("acemq_idempotency", "orders") }

    # A thread that waits for a locked SQLite file keeps the one that has the lock from running, see SQLitePatience.
    def concurrency
      database == :sqlite ? 1 : 2
    end

    # Two workers at a time, one in the place of each that died, and always something to do.
    def work_until_killed(count)
      ids = []
      workers = []
      until workers.count(&:killed?) >= count
        workers << worker_process(queue, mortality: 0.2, concurrency: concurrency).go if workers.count(&:running?) < 2
        ids.concat(publish(*Array.new(4) { |n| "m-#{ids.size + n}" })) if amqp.message_count(queue) < 2
        sleep 0.05
      end
      workers.each(&:kill)
      ids
    end

    shared_examples "one effect for each message" do |count|
      it "one effect for each message, when #{count} workers were killed in the middle" do
        ids = Timeout.timeout(10 * count) { work_until_killed(count) }
        survivor = worker_process(queue, concurrency: concurrency).go
        eventually(60) { expect(survivor.said("ready")).not_to be_empty }
        eventually(60) { expect([effects.size, *left]).to eq [ids.size, 0, 0, 0] }
        survivor.finish

        expect(effects).to match_array ids
        expect(left.drop(1)).to eq [0, 0]
        # A second copy may have been waiting for the first one, and goes back; what was accepted does not.
        waiting = survivor.said("answered").select { |answered| answered[:answer] == "in_progress" }.map { |answered| answered[:id] }
        expect(drain(amqp, queue).map(&:message_id) - waiting).to be_empty
        expect(survivor.said("answered").map { |answered| answered[:attempt] }.uniq).to eq [1]
      end
    end

    include_examples "one effect for each message", 6

    describe "in the full number", :long do
      include_examples "one effect for each message", 200
    end
  end

  # Case 1.
  on_each_database(:postgres, :mariadb) do
    before(:context) do
      make_idempotency
      make_orders
    end

    before { empty("acemq_idempotency", "orders") }

    # The first worker is killed in its handler, and the second one, which waits for nothing else, gets the message.
    def killed_in_mid_handler(**options)
      publish("m-1")
      first, second = [60, 0].map { |stall| worker_process(queue, concurrency: 1, claim_timeout: 3, stall: stall, **options) }
      eventually(20) { expect([first, second].map { |worker| worker.said("booted").size }).to eq [1, 1] }
      first.go
      eventually(20) { expect(first.said("begun")).not_to be_empty }
      second.go
      eventually(20) { expect(second.said("ready")).not_to be_empty }
      first.kill
      eventually(10) { expect(second.said("answered")).not_to be_empty }
      second
    end

    it "does the work of a dead worker as soon as its claim is stale, and not before" do
      second = killed_in_mid_handler
      expect(second.said("answered").first).to include(answer: "in_progress")
      second.kill # the message is not lost with the one that holds it meanwhile
      eventually(10) { expect([*left, effects]).to eq [1, 0, 0, []] }
      third = worker_process(queue, concurrency: 1, claim_timeout: 3).go
      eventually(30) { expect(effects).to eq %w[m-1] }
      eventually(10) { expect(left).to eq [0, 0, 0] }
      third.finish

      expect([*left, effects]).to eq [0, 0, 0, %w[m-1]]
      expect([second, third].flat_map { |worker| worker.said("answered") }.map { |answered| answered[:attempt] }.uniq).to eq [1]
    end

    # What the wrapper warns of when it is built, and the documentation says.
    it "loses that message over a store with only first_time?, and has said so" do
      second = killed_in_mid_handler(store: "first_time")
      expect(second.said("answered")).to eq [{ event: "answered", id: "m-1", attempt: 1, answer: "accept" }]
      second.finish

      expect([effects, left]).to eq [[], [0, 0, 0]]
      expect(second.complaints.scan(/OnlyFirstTime answers first_time\? but not claim: .* is lost if it comes back/).size).to eq 1
    end
  end

  it "is documented" do
    text = File.read(File.expand_path("../../docs/idempotency.md", __dir__)).tr("\n", " ")

    expect(text).to match(/store with only `first_time\?`.*cannot tell work in progress from work that is done.*is never done/)
  end
end
