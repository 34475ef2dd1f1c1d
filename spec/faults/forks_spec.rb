# frozen_string_literal: true

require "timeout"

# Case 9, many times over: a process that publishes is forked again and again.
RSpec.describe "Forks while the parent publishes", :broker do
  forks = ENV["ACEMQ_LONG"] == "1" ? 1_000 : 30

  let(:connection) { open_connection(client_name: "parent") }
  let(:queue) { new_queue(connection) }

  # What children do, in turn. The one that only ends runs at_exit handlers and finalizers of everything it inherited.
  let(:errands) do
    { publishes: ->(n) { publish("child-#{n}") && exit!(0) }, # and leaves its connection to the operating system
      ends: ->(_) { exit(0) },
      closes: ->(_) { connection.close || exit!(0) },
      collects: lambda { |_|
        GC.start
        exit!(0)
      } }
  end

  def publish(text)
    connection.publish({ "n" => text }, to: queue, mandatory: true)
  end

  def child(number)
    fork do
      $stdout.reopen(File::NULL) # RSpec's at_exit has nothing to say here
      Timeout.timeout(20) { errands.values[number % errands.size].call(number) }
    rescue Exception => e # rubocop:disable Lint/RescueException -- the child's only way to say what went wrong
      exit!(0) if e.is_a?(SystemExit) && e.success?
      warn "child #{number}: #{e.class}: #{e.message}"
      exit!(1)
    end
  end

  # @return [Array<Process::Status>] of those that did not end well
  def run_children(count)
    (0...count).each_slice(6).flat_map do |numbers|
      pids = numbers.map { |number| child(number) }
      pids.map { |pid| Timeout.timeout(30) { Process.wait2(pid).last } }
    end.reject(&:success?)
  end

  def while_publishing(threads)
    done = false
    sent = Array.new(threads) do |t|
      Thread.new do
        (1..).each do |n|
          publish("parent-#{t}-#{n}")
          break n if done
        end
      end
    end
    yield
    done = true
    sent.sum(&:value)
  ensure
    done = true
  end

  def own_connections
    broker.ctl("list_connections", "pid", "client_properties", "state").lines.grep(/"parent"/).map { |line| line.split.first }
  end

  # @return [Array<String>] lines that came since the broker had said so many
  def broker_log(from = 0)
    Dir[File.join(broker.folder, "acemq*.log")].flat_map { |file| File.readlines(file, encoding: Encoding::BINARY) }.drop(from)
  end

  it "#{forks} times: nobody hangs, everybody who publishes has a connection of its own, and the parent keeps its own" do
    skip "the log of a broker that is not ours cannot be read" unless broker.ours?

    publish("before")
    before = own_connections
    said = broker_log.size
    failed = nil
    sent = while_publishing(3) { failed = run_children(forks) }

    expect(failed).to eq []
    expect(own_connections).to eq before
    publishing = (0...forks).count { |n| (n % errands.size).zero? }
    eventually { expect(broker_log(said).grep(/accepting AMQP connection/).size).to eq publishing }
    expect(broker_log(said).grep(/error on AMQP connection|unexpected.frame|frame.error/i)).to eq []
    expect(drain(connection, queue).map(&:body).uniq.size).to eq 1 + sent + publishing
  end
end
