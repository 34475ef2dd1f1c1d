# frozen_string_literal: true

# Case 14 at its hardest: a process is stopped for longer than its lease in the middle of a batch, and goes on when
# another has taken its rows over.
RSpec.describe "A relay that is stopped in mid-batch", :broker do
  lease = 1.5 # seconds
  batch = 60
  in_flight = 10

  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:elsewhere) { new_queue(amqp) }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 30) }
    let(:ids) { Array.new(batch) { |n| format("s-%02d", n) } }

    def put_all
      ActiveRecord::Base.transaction { ids.each { |id| put(id, to: queue) } }
    end

    # In its third chunk: two are confirmed, the third is written, and there is more.
    let(:first) do
      relay_process("first", failpoints: "after_publish=stop#3", store: { lease: lease }, confirm_timeout: 1,
                             batch: batch, in_flight: in_flight)
    end

    # The first record after a dial goes alone.
    let(:sent) { ids.first(1 + (2 * in_flight)) }

    # Proof that it has left its old batch behind: something new is sent by it, to where nobody holds anything.
    def expect_alive(relay)
      put("new", to: elsewhere)
      eventually(10) { expect(marked).to include "new" }
      relay.terminate
      relay.wait(10)
      expect(relay.misdeeds_at_end).to be_empty
    end

    # What the database knows of them.
    def known(ids)
      rows.select { |row| ids.include?(row["id"]) }.map { |row| row.except("body", "headers") }
    end

    it "leaves its rows to another after its lease, and touches nothing of them when it goes on" do
      put_all
      eventually(20) { expect(first).to be_stopped }
      expect(leased).to match_array(ids)
      second = new_relay(amqp, store, interval: 0.1).start
      eventually(lease + 5) { expect(marked).to match_array(ids) }
      second.close

      arrived = ids_in(amqp, queue)
      expect(arrived).to eq sent + ids
      before = known(ids)
      first.continue
      expect_alive(first)

      expect(ids_in(amqp, queue)).to be_empty
      expect(known(ids)).to eq before
      expect(charged).to be_empty
    end

    it "marks what it had confirmed, and charges, releases and renews nothing, while another holds its rows" do
      put_all
      eventually(20) { expect(first).to be_stopped }
      second = relay_process("second", failpoints: "after_claim=stop#1", store: { lease: 30 }, batch: batch)
      eventually(20) { expect(second).to be_stopped }
      before = known(ids)
      first.continue
      expect_alive(first)

      confirmed = marked - %w[new]
      expect(confirmed).to include(*sent.first(1 + in_flight)).and all(satisfy { |id| sent.include?(id) })
      rest = ids - confirmed
      expect(known(rest)).to eq(before.last(rest.size)).and all(include("attempts" => 0, "locked_by" => be_a(String)))
      expect(ids_in(amqp, queue)).to eq sent

      second.continue
      eventually(10) { expect(marked).to match_array(ids + %w[new]) }
      expect(ids_in(amqp, queue)).to eq ids
      expect(charged).to be_empty
    end
  end

  on_each_database(:postgres) do
    before(:context) { make_outbox }

    # Bytes that the kernel could not get rid of yet, over all connections to a port.
    def backed_up(port)
      connections = File.readlines("/proc/net/tcp").map(&:split).select { |fields| fields[2]&.end_with?(format(":%04X", port)) }
      connections.sum { |fields| fields[4].split(":").first.hex }
    end

    # When what the block reads has stayed the same for a while.
    def await_rest
      last = nil
      eventually do
        now = yield
        resting = now == last
        last = now
        sleep 0.3 unless resting
        expect(resting).to be true
      end
    end

    # All of it is in the core's hands already, more than the kernel takes: between it and the socket there is the gate.
    it "writes nothing more of what it could not write before" do
      amqp = open_connection
      queue = new_queue(amqp)
      proxy = new_proxy
      ids = Array.new(40) { |n| format("g-%02d", n) }
      put("before", to: queue)
      first = relay_process("first", url: proxy.url(broker.url), store: { lease: lease }, confirm_timeout: 1)
      eventually(20) { expect(marked).to eq %w[before] }

      proxy.stall(:up)
      ActiveRecord::Base.transaction { ids.each { |id| put(id, to: queue, payload: "x" * 400_000) } }
      eventually { expect(backed_up(proxy.port)).to be_positive }
      first.stop
      eventually { expect(first).to be_stopped }
      second = new_relay(amqp, AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 30), interval: 0.1).start
      eventually(lease + 10) { expect(marked).to match_array(ids + %w[before]) }
      second.close
      proxy.resume
      await_rest { proxy.upstream } # what the kernel had taken over
      ids_in(amqp, queue)

      first.continue
      put("after", to: queue)
      eventually(10) { expect(marked).to include "after" }
      expect(ids_in(amqp, queue)).to eq %w[after]
      expect(charged).to be_empty
    end
  end
end
