# frozen_string_literal: true

require "acemq/rails"
require "securerandom"
require "tmpdir"

# Case 9. Puma with preload_app!, Resque, Spring: the parent has published before it forks.
RSpec.describe "AceMQ::Rails after a fork", :broker do
  let(:queue) { "fork.#{SecureRandom.hex(6)}" }

  around do |example|
    before = AceMQ::Rails.config
    AceMQ::Rails.config = AceMQ::Rails::Configuration.new(url: AceMQ::TestServers.rabbitmq.url)
    AceMQ::Rails.connection = nil
    example.run
  ensure
    AceMQ::Rails.disconnect!
    AceMQ::Rails.connection = nil
    AceMQ::Rails.config = before
  end

  before { AceMQ::Rails.connection.declare_queue(queue, queue_type: :classic) }
  after { AceMQ::Rails.connection.delete_queue(queue) }

  # exit! keeps the parent's at_exit blocks, RSpec's among them, out of the child.
  def child(&work)
    fork do
      work.call
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- the child's only way to say what went wrong
      warn e.full_message
      exit!(1)
    end
  end

  def ended(pid)
    eventually(10) { expect(Process.wait2(pid, Process::WNOHANG)&.last).to be_success }
  end

  it "dials anew in each child and leaves the parent's connection alone" do
    10.times { AceMQ::Rails.publish({}, to: queue) }
    children = Array.new(3) do
      child do
        10.times { AceMQ::Rails.publish({}, to: queue) }
        AceMQ::Rails.disconnect!
      end
    end
    children.each { |pid| ended(pid) }
    10.times { AceMQ::Rails.publish({}, to: queue) }

    expect(AceMQ::Rails.connection.message_count(queue)).to eq(50)
  end

  # `rails server -d` and its like: the process that goes on is not the one that has published.
  it "dials anew in a process that has made itself a daemon, and relays there" do
    Dir.mktmpdir do |folder|
      log = File.join(folder, "log")
      ended(child do
        AceMQ::Rails.publish({ "n" => 1 }, to: queue)
        store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
        relay = AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store, interval: 0.02).start
        Process.daemon(true, true)
        AceMQ::Rails.publish({ "n" => 2 }, to: queue)
        store.add(AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { "n" => 3 }, to: queue))
        inherited = relay.running?
        relay.start
        sleep 0.01 until store.size.zero?
        AceMQ::Rails.disconnect!
        File.write(log, [inherited, relay.running?].inspect)
      end)
      eventually { expect(File.exist?(log) && File.read(log)).to eq "[false, false]" }
    end

    expect(AceMQ::Rails.connection.message_count(queue)).to eq(3)
  end

  it "closes nothing of the parent's in a child that only ends" do
    AceMQ::Rails.publish({}, to: queue)
    ended(child { AceMQ::Rails.disconnect! })

    expect(AceMQ::Rails).to be_connected
    AceMQ::Rails.publish({}, to: queue)
  end
end
