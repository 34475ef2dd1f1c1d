# frozen_string_literal: true

# The first part of case 14: a batch takes longer than its lease, because every confirm takes its time.
RSpec.describe "Slow confirms", :broker do
  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:proxy) { new_proxy }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 1) }
    let(:ids) { Array.new(20) { |n| format("c-%02d", n) } }

    def slow_relay(in_flight)
      connection = open_connection(proxy.url(broker.url))
      new_relay(connection, store, interval: 0.1, batch: 20, in_flight: in_flight, confirm_timeout: 0.9)
    end

    # Sessions that wait with a transaction open.
    def idle_in_transaction
      sql = if database == :postgres
              "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
            else
              "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p " \
                "ON p.id = t.trx_mysql_thread_id WHERE p.db = DATABASE() AND p.command = 'Sleep'"
            end
      value(sql).to_i
    end

    # One by one, where each is asked for a lease that is long enough, and in one ticket, which is told of renewals.
    { 1 => 0.06, 2 => 0.1 }.each do |in_flight, delay|
      it "send nothing twice, with #{in_flight} in flight and two relays, and keep no transaction open" do
        relays = Array.new(2) { slow_relay(in_flight) }
        relays.each(&:sweep) # the ways to the broker are there
        proxy.delay(delay)
        ActiveRecord::Base.transaction { ids.each { |id| put(id, to: queue) } }
        relays.each(&:start)
        eventually { expect(amqp.message_count(queue)).to be_positive }
        open_meanwhile = Array.new(20) { sleep(0.05) && idle_in_transaction }
        eventually(20) { expect(marked.size).to eq 20 }

        expect(ids_in(amqp, queue)).to eq ids
        expect(open_meanwhile).to all(eq(0))
        expect(charged).to be_empty
        expect(reported).to be_empty
      end
    end
  end
end
