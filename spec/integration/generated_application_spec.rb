# frozen_string_literal: true

require "securerandom"

# Everything together, as it is deployed: a generated application under Puma with preload and two workers, a relay and a
# consumer in processes of their own, on PostgreSQL and RabbitMQ.
RSpec.describe "A generated Rails application", :broker do
  on_each_database(:postgres) do
    # Other examples leave tables of these names.
    def drop_tables
      connection { |db| %w[acemq_outbox acemq_idempotency orders fulfilments].each { |table| db.drop_table(table, if_exists: true) } }
    end

    before(:context) do
      drop_tables
      @queue = "shop.#{SecureRandom.hex(6)}"
      @app = AceMQ::SpecSupport::GeneratedApplication.new(
        database_url: AceMQ::SpecSupport::Database.url(:postgres), broker_url: AceMQ::TestServers.rabbitmq.url, queue: @queue
      )
    end

    after(:context) do
      @app&.remove
      AceMQ::AMQP::Connection.open(AceMQ::TestServers.rabbitmq.url).then do |connection|
        ["", ".dlq", ".parked"].each { |suffix| connection.delete_queue("#{@queue}#{suffix}") }
        connection.close
      end
      drop_tables
    end

    before { empty("acemq_outbox", "acemq_idempotency", "orders", "fulfilments") }

    after { @app.kill_all }

    let(:amqp) { open_connection }

    def place(count)
      Array.new(4) { |n| Thread.new { Array.new((count / 4) + (n < count % 4 ? 1 : 0)) { @app.place_order } } }.flat_map(&:value)
    end

    def fulfilled
      connection { |db| db.select_values("SELECT order_id FROM fulfilments") }
    end

    def unpublished
      value("SELECT COUNT(*) FROM acemq_outbox WHERE published_at IS NULL").to_i
    end

    def expect_one_effect_each(orders)
      eventually(30) { expect(fulfilled.uniq.size).to eq orders.size }
      eventually { expect([unpublished, amqp.message_count(@queue)]).to eq [0, 0] }
      expect(fulfilled).to match_array(orders)
    end

    # @return [Array<Integer, nil>] exit codes
    def terminate(*processes)
      processes.each { |process| process.signal("TERM") }.map { |process| process.wait.exitstatus }
    end

    def expect_nothing_in_between
      expect(leased).to be_empty
      expect(value("SELECT COUNT(*) FROM acemq_idempotency WHERE state = 'CLAIMED'").to_i).to eq 0
    end

    def expect_clean(*processes)
      said = [*processes.map(&:output), @app.log].join
      # Puma says so of a thread of a library of Rails' own.
      said = said.lines.grep_v(/! WARNING: Detected \d Thread|ruby_thread_local_var/)
      expect(said.grep(/error|fatal|exception|warn|could not|not everything/i)).to eq []
    end

    def relaying(workers)
      workers.select { |worker| worker.threads.include?("acemq-relay") }
    end

    # @return [Integer] sockets of the process that lead to the broker
    def links(pid)
      own = Dir["/proc/#{pid}/fd/*"].filter_map { |file| File.readlink(file)[/socket:\[(\d+)\]/, 1] if File.symlink?(file) }
      port = format(":%04X", URI(broker.url).port)
      File.readlines("/proc/net/tcp").count { |line| line.split[2].end_with?(port) && own.include?(line.split[9]) }
    end

    it "fulfils each order once, through SIGTERM everywhere" do
      consumer = @app.consumer
      relay = @app.relay
      puma = @app.puma
      orders = place(30)
      orders += place(10)
      expect(terminate(consumer, relay)).to eq [0, 0] # while the last of them are on their way
      expect_nothing_in_between
      expect(@app.workers.flat_map(&:threads).grep(/relay/)).to be_empty
      orders += place(5)
      expect(terminate(puma)).to eq [0]

      again = [@app.consumer, @app.relay]
      expect_one_effect_each(orders)
      expect(terminate(*again)).to eq [0, 0]
      expect_nothing_in_between
      expect([".dlq", ".parked"].map { |suffix| amqp.message_count("#{@queue}#{suffix}") }).to eq [0, 0]
      expect_clean(consumer, relay, puma, *again)
    end

    it "relays in each worker when an initializer starts a relay, never in the master, and ends cleanly" do
      consumer = @app.consumer
      puma = @app.puma(env: { "RELAY" => "initializer" })
      eventually { expect(relaying(@app.workers).size).to eq 2 }
      expect(@app.workers.map { |worker| links(worker.pid) }).to all(be_positive)
      expect(links(puma.pid)).to eq 0

      expect_one_effect_each(place(20))
      expect(terminate(puma, consumer)).to eq [0, 0]
      expect_nothing_in_between
      expect_clean(puma, consumer)
    end

    it "relays in one worker with `plugin :acemq_relay`, and in its successor when that one dies" do
      consumer = @app.consumer
      puma = @app.puma(env: { "RELAY" => "plugin" })
      eventually { expect(relaying(@app.workers).size).to eq 1 }
      first = relaying(@app.workers).first.pid
      expect_one_effect_each(orders = place(4))

      Process.kill("KILL", first)
      eventually(30) { expect(relaying(@app.workers).map(&:pid) - [first]).not_to be_empty }
      expect_one_effect_each(orders + place(4))
      expect(terminate(puma, consumer)).to eq [0, 0]
      expect_nothing_in_between
    end

    it "relays in the single process of Puma with the plugin, and in the one that takes its place at a restart" do
      consumer = @app.consumer
      puma = @app.puma(workers: 0, env: { "RELAY" => "plugin" })
      expect_one_effect_each(orders = place(4))
      puma.signal("USR2")
      eventually(30) { expect(puma.output.scan("Use Ctrl-C to stop").size).to eq 2 }

      expect_one_effect_each(orders + place(4))
      expect(terminate(puma, consumer)).to eq [0, 0]
      expect_nothing_in_between
      expect_clean(puma, consumer)
    end

    it "relays in the daemon that rails server has become" do
      consumer = @app.consumer
      pid = @app.daemon(env: { "RELAY" => "initializer" })
      expect_one_effect_each(place(4))
      Process.kill("TERM", pid)

      eventually(30) { expect(@app).not_to be_alive(pid) }
      expect(terminate(consumer)).to eq [0]
      expect_nothing_in_between
    end
  end
end
