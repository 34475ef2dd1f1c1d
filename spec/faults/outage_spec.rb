# frozen_string_literal: true

# Cases 3, 6 and 15 in a row, each for as long as it takes to be noticed; ten minutes each in the long run.
RSpec.describe "A long outage", :broker do
  outage = ENV["ACEMQ_LONG"] == "1" ? 600 : 3 # seconds
  lease = 2.0 # seconds: an alarm outlasts it

  on_each_database(:postgres) do
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      relay.start
    end

    let(:pace) { outage / 60.0 }
    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:proxy) { new_proxy }
    let(:through_proxy) { AceMQ::AMQP::Connection.lazy(proxy.url(broker.url), connection_timeout: 2) }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: lease) }
    let(:relay) { new_relay(through_proxy, store, interval: 0.2, confirm_timeout: 1) }

    after { through_proxy.close(timeout: 2) }

    # Goes on writing during the block.
    def while_writing
      done = false
      writing = Thread.new { put_next && sleep(pace) until done }
      yield
    ensure
      done = true
      writing.join
    end

    def put_next
      @last = (@last || 0) + 1
      ActiveRecord::Base.connection_pool.with_connection { put("o-#{@last}", to: queue) }
      @last
    end

    # @return [Array<String>] messages told, by now
    def told
      @told ||= []
      @told << reported.pop.message until reported.empty?
      @told
    end

    # @return [Float] seconds until something that was waiting when the block had run was delivered
    def delivered_after
      waiting = rows.reject { |row| row["published_at"] }.map { |row| row["id"] }
      expect(waiting).not_to be_empty
      elapsed do
        yield
        eventually(5) { expect(marked & waiting).not_to be_empty }
      end
    end

    def expect_everything_delivered
      eventually(30) { expect(store.pending_count).to eq 0 }
      copies = ids_in(amqp, queue).tally
      expect(copies.keys).to match_array(Array.new(@last) { |n| "o-#{n + 1}" })
      expect(copies.values.max).to be <= 2
      expect(charged).to be_empty
      expect(leased).to be_empty
    end

    it "of the broker costs nobody an attempt and few dials, and is told once" do
      proxy.turn_away
      while_writing do
        eventually { expect(relay.state.name).to eq :down }
        sleep outage # what is asked is what happens during this time
        expect(proxy.accepted).to be < (outage * 40 / 30.0) + 5
        expect(told.size).to eq 1
        expect(delivered_after { proxy.resume }).to be < 2
      end
      expect_everything_delivered
      expect(told.size).to eq 1
      eventually { expect(relay.state.name).to eq :idle }
    end

    # Longer than the lease, which is renewed meanwhile: what was on its way when the alarm came goes on its way.
    it "by an alarm is waited out on the same connection, visibly, and is told once" do
      put_next
      eventually { expect(marked).not_to be_empty }
      while_writing do
        under_alarm do
          eventually(15) { expect(relay.state.name).to eq :blocked }
          sleep outage # see above
          expect(relay.state).to have_attributes(name: :blocked, reason: /memory/)
          expect(told).to match [/blocked.*memory/]
          @dialled = proxy.accepted
        end
        eventually(5) { expect(relay.state.name).not_to eq :blocked }
      end
      expect_everything_delivered
      expect(proxy.accepted).to eq @dialled
      expect(told.size).to eq 1
    end

    it "of the link, cut in mid-batch, costs one copy of what was on its way" do
      put_next
      eventually { expect(marked).not_to be_empty }
      while_writing do
        proxy.stall(:down) # what is written now has no confirm when the link is cut
        eventually { expect(amqp.message_count(queue)).to be_positive.and(be > marked.size) }
        proxy.turn_away
        eventually { expect(relay.state.name).to eq :down }
        before = proxy.accepted
        sleep outage # see above
        expect(proxy.accepted - before).to be < (outage * 40 / 30.0) + 5
        expect(told.size).to eq 1
        expect(delivered_after { proxy.resume }).to be < 2
      end
      expect_everything_delivered
      expect(told.size).to eq 1
    end
  end
end
