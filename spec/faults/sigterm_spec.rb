# frozen_string_literal: true

# A deploy: the process is told to end while a batch is on its way.
RSpec.describe "SIGTERM in mid-batch", :broker do
  on_each_database(:postgres) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:proxy) { new_proxy }
    let(:ids) { Array.new(100) { |n| format("t-%02d", n) } }

    def relay_in_mid_batch(**options)
      put("before", to: queue)
      relay = relay_process(url: proxy.url(broker.url), batch: 100, in_flight: 10, **options)
      eventually(20) { expect(marked).to eq %w[before] }
      drain(amqp, queue)
      yield
      ActiveRecord::Base.transaction { ids.each { |id| put(id, to: queue) } }
      eventually { expect(leased.size).to eq 100 }
      relay
    end

    # @return [Float] seconds until the process has ended
    def end_of(relay)
      elapsed do
        relay.terminate
        relay.wait(20)
      end
    end

    def expect_nothing_lost
      expect(charged).to be_empty
      proxy.resume
      relay = new_relay(amqp)
      eventually { sweep_quietly(relay) && expect(outbox.pending_count).to(eq(0)) }
      (@arrived + ids_in(amqp, queue)).tap { |arrived| expect(arrived.uniq).to match_array(ids) }
    end

    it "lets the batch end by itself where there is time for it" do
      relay = relay_in_mid_batch(close_within: 10) { proxy.delay(0.05) }
      eventually { expect(amqp.message_count(queue)).to be >= 20 }
      expect(end_of(relay)).to be < 10

      expect(relay.misdeeds_at_end).to be_empty
      expect(marked).to match_array(ids + %w[before])
      expect(leased).to be_empty
      expect(ids_in(amqp, queue)).to eq ids
    end

    it "ends it where there is not: what is confirmed is marked, and the rest is free at once" do
      relay = relay_in_mid_batch(close_within: 2) { proxy.delay(0.3) }
      eventually { expect(amqp.message_count(queue)).to be >= 20 }
      expect(end_of(relay)).to be < 4

      expect(relay.misdeeds_at_end).to be_empty
      @arrived = ids_in(amqp, queue)
      expect(marked.size).to be_between(20, 80)
      expect(marked - @arrived).to eq %w[before]
      expect(@arrived.size - marked.size).to be <= 10 # those without a confirm
      expect(leased).to be_empty
      expect(value("SELECT COUNT(*) FROM acemq_outbox WHERE locked_until IS NOT NULL").to_i).to eq 0
      expect(expect_nothing_lost.tally.values.count(2)).to be <= 10
    end

    it "ends it when the link is silent" do
      relay = relay_in_mid_batch(close_within: 1) { proxy.stall }
      expect(end_of(relay)).to be < 3

      expect(relay.misdeeds_at_end).to be_empty
      expect(leased).to be_empty
      @arrived = []
      expect_nothing_lost
    end
  end
end
