# frozen_string_literal: true

require_relative "application"
require "open3"

# The hand-written outbox in processes of its own: the relay that an initializer starts beside the consumers, and the one
# of the rake task; on the real broker.
RSpec.describe "Processes of an application with a hand-written outbox", :broker do
  on_each_database(:sqlite, :postgres) do
    before(:context) do
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
    end

    after(:context) { HandwrittenApplication.drop }

    before do
      connection.declare_exchange("shop-events", kind: "topic")
      connection.bind(queue: queue, exchange: "shop-events", routing_key: "order.#")
      AceMQ::Rails.connection = connection
    end

    after do
      stop
      AceMQ::Rails.connection = nil
      [OutboxMessage, Order].each(&:delete_all)
    end

    let(:connection) { open_connection }
    let(:queue) { new_queue(connection) }

    def start(command)
      environment = { "ACEMQ_SPEC_URL" => broker.url, "ACEMQ_SPEC_DATABASE" => JSON.generate(database_config) }
      lib = File.expand_path("../../lib", __dir__)
      @input, @output, @process = Open3.popen2e(environment, RbConfig.ruby, "-W0", "-I#{lib}",
                                                File.join(__dir__, "app/process.rb"), command)
    end

    def database_config
      AceMQ::SpecSupport::Database.config(database)
    end

    # @return [Process::Status]
    def stop(signal = "TERM")
      return unless @process

      Process.kill(signal, @process.pid) if @process.alive?
      @process.value.tap { @process = nil }
    rescue Errno::ESRCH
      nil
    end

    def place(count)
      Array.new(count) { |n| Order.place!({ customer: "c#{n}" }) }
    end

    def ids_in_queue
      drain(connection, queue).map(&:message_id)
    end

    { "consumer" => "the initializer's, in the consumer process", "acemq:relay" => "the rake task's" }.each do |command, whose|
      it "publish by a relay: #{whose}, which ends cleanly at TERM" do
        place(3)
        start(command)
        eventually(30) { expect(OutboxMessage.where(published_at: nil).count).to eq 0 }
        place(2)
        eventually(30) { expect(OutboxMessage.where(published_at: nil).count).to eq 0 }

        expect(stop).to be_success
        expect(ids_in_queue).to match_array(OutboxMessage.pluck(:id))
        expect(OutboxMessage.where.not(locked_by: nil).count).to eq 0
      end
    end

    it "report what cannot be delivered, with its destination" do
      AceMQ::Rails.connection.then do |connection|
        ActiveRecordOutboxStore.new.add(
          AceMQ::AMQP::Patterns.record(connection, {}, to: "invoice.sent", exchange: "shop-events", id: "lost-1")
        )
      end
      start("consumer")

      expect(@output.gets).to match(/reported: .*no queue.*outbox.*shop-events.*routing_key.*invoice\.sent/)
      stop
      expect(OutboxMessage.find("lost-1")).to have_attributes(published_at: nil, last_error: /no queue/)
    end

    it "purge by the rake tasks" do
      place(1)
      OutboxMessage.update_all(published_at: 8.days.ago)
      ActiveRecordIdempotencyStore.new.first_time?("old")
      HandledMessage.update_all(expires_at: 1.minute.ago)

      start("purge_outbox")
      expect(@output.read).to include "removed 1 published rows"
      start("acemq:purge_idempotency")
      expect(@output.read).to include "removed 1 expired keys"
    end
  end
end
