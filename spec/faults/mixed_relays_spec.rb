# frozen_string_literal: true

require_relative "../seeds/application"

# An application moves over: for a while its hand-written store and ours are at the same table, each with relays of its
# own, and both are written through.
RSpec.describe "A hand-written relay and ours on one table", :broker do
  seconds = ENV["ACEMQ_LONG"] == "1" ? 30 : 2

  on_each_database do
    before(:context) do
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
    end

    after(:context) { HandwrittenApplication.drop }

    let(:amqp) { open_connection }
    let(:queues) { Array.new(3) { new_queue(amqp) } }
    let(:handwritten) { ActiveRecordOutboxStore.new }
    let(:proxy) { new_proxy }

    # One transaction after the other, by turns through either store.
    #
    # @return [Array<String>] ids that were committed
    def write_for(seconds, stores)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      committed = []
      (0..).each do |n|
        ids = Array.new(3) { |i| "x-#{n}-#{i}" }
        ActiveRecord::Base.transaction do
          ids.each_with_index { |id, i| stores[n % 2].add(AceMQ::AMQP::Patterns.record(recorder, {}, to: queues[i], id: id)) }
          n % 5 == 4 ? raise(ActiveRecord::Rollback) : committed.concat(ids)
        end
        ActiveRecord::Base.connection_pool.release_connection
        return committed if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      end
    end

    # Connections break meanwhile.
    def while_cutting
      done = false
      cutting = Thread.new { sleep(0.5) && proxy.reset until done }
      yield
    ensure
      done = true
      cutting.join
    end

    def through_proxy
      open_connection(proxy.url(broker.url))
    end

    it "lose nothing together, and publish nothing that was not committed" do
      ours = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 5)
      new_relay(through_proxy, ours, interval: 0.05, batch: 20, confirm_timeout: 2).start
      new_relay(through_proxy, handwritten, interval: 0.05, batch: 20).start
      committed = while_cutting { write_for(seconds, [handwritten, ours]) }

      eventually(90) { expect(OutboxMessage.where(published_at: nil).pluck(:id)).to be_empty }
      relays.each(&:close)
      arrived = queues.flat_map { |queue| ids_in(amqp, queue) }
      expect(arrived.uniq).to match_array(committed)
      expect(OutboxMessage.pluck(:id)).to match_array(committed)
      expect(OutboxMessage.sum(:attempts)).to eq 0
    end

    it "share the rows: what one has leased, the other leaves alone" do
      ours = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 60)
      ids = Array.new(10) { |n| "l-#{n}" }
      ActiveRecord::Base.transaction do
        ids.each { |id| handwritten.add(AceMQ::AMQP::Patterns.record(recorder, {}, to: queues.first, id: id)) }
      end
      theirs = handwritten.pending(4).map(&:id)
      expect(ours.claim(10)).to be_empty # their destination is at work

      handwritten.mark_published(theirs[0])
      theirs.drop(1).each { |id| handwritten.mark_failed(id, "no") }
      claim = ours.claim(6)
      expect(claim.records.map(&:id)).to eq(ids[1, 6])
      expect(handwritten.pending(10).map(&:id)).to eq ids.last(3)
    ensure
      OutboxMessage.delete_all
    end
  end
end
