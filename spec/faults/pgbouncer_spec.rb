# frozen_string_literal: true

require "open3"

# A pooler hands out another session for every transaction: nothing may be left in a session, and nothing be expected
# of one.
RSpec.describe "The relay through PgBouncer in transaction mode", :broker do
  # ActiveRecord's own statements are not prepared either, as its documentation demands.
  [false, true].each do |prepared|
    describe prepared ? "with prepared statements left on" : "as it is to be set up" do
      before(:context) do
        through = URI(AceMQ::TestServers.pgbouncer.url)
        AceMQ::SpecSupport::Database.connect(:postgres, host: through.host, port: through.port, prepared_statements: prepared)
        make_outbox
      end

      after(:context) { AceMQ::SpecSupport::Database.disconnect }
      before { empty("acemq_outbox") }

      let(:amqp) { open_connection }
      let(:queue) { new_queue(amqp) }
      let(:exchange) { "pooled.#{SecureRandom.hex(4)}" }

      # @return [Array<String>] ids that a writer writes in these of its transactions
      def written(writer, transactions)
        transactions.flat_map { |n| Array.new(3) { |i| format("w%d-%03d-%d", writer, n, i) } }
      end

      # One destination each, so that its order is known.
      def write(writers, transactions)
        threads = Array.new(writers) do |w|
          Thread.new do
            transactions.times do |n|
              ActiveRecord::Base.transaction do
                written(w, [n]).each { |id| put(id, exchange: exchange, to: "w#{w}") }
                raise ActiveRecord::Rollback if n % 5 == 4
              end
              ActiveRecord::Base.connection_pool.release_connection
            end
          end
        end
        threads.each(&:join)
      end

      it "publishes what was committed, in order and once, with writers and relays that share few sessions" do
        amqp.declare_exchange(exchange, kind: "direct", auto_delete: true)
        4.times { |w| amqp.bind(queue: queue, exchange: exchange, routing_key: "w#{w}") }
        put("early", exchange: exchange, to: "nobody")
        two = Array.new(2) { new_relay(open_connection, interval: 0.05, batch: 20).start }
        write(4, 25)
        committed = Array.new(4) { |w| written(w, (0...25).reject { |n| n % 5 == 4 }) }
        eventually(20) { expect(marked).to match_array(committed.flatten) }

        arrived = drain(amqp, queue).group_by(&:routing_key).transform_values { |found| found.map(&:message_id) }
        expect(arrived.sort.map(&:last)).to eq committed
        expect(charged.keys).to eq %w[early]
        amqp.bind(queue: queue, exchange: exchange, routing_key: "nobody")
        two.each(&:close)
        expect(new_relay(amqp).sweep).to eq 1
        expect(leased).to be_empty
        expect(outbox.purge_published(-5)).to eq committed.flatten.size + 1
      end

      # Its session, too, may be one that is being killed.
      def put_again(id)
        put(id, to: queue)
      rescue ActiveRecord::StatementInvalid
        retry
      end

      it "goes on when the pooler's sessions are killed" do
        relay = new_relay(amqp, interval: 0.05).start
        5.times do |n|
          put_again("k-#{n}")
          value("SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity " \
                "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        end
        eventually { expect(marked.size).to eq 5 }

        expect(ids_in(amqp, queue).uniq.size).to eq 5
        expect(relay).to be_running
      end
    end
  end

  it "passes the specs of the relay on the real broker", :long do
    environment = { "ACEMQ_TEST_POSTGRES_URL" => AceMQ::TestServers.pgbouncer.url, "ACEMQ_TEST_AMQP_URL" => broker.url,
                    "ACEMQ_LONG" => nil }
    said, status = Open3.capture2e(environment, "rspec", "--tag", "postgres", "spec/integration")

    expect(status).to be_success, said
    expect(said).to match(/[1-9]\d examples, 0 failures/)
  end
end
