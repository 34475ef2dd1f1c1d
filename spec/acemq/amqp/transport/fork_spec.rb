# frozen_string_literal: true

require "timeout"

# Case 9
RSpec.describe AceMQ::AMQP::Transport, "across a fork" do
  let(:connection) { open_connection }
  let(:queue) { new_queue(connection) }

  # Runs the block in a child that leaves without the parent's at_exit handlers, and within five seconds.
  def child
    fork do
      Timeout.timeout(5) { yield }
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- the child's only way to say what went wrong
      warn "child: #{e.class}: #{e.message}"
      exit!(1)
    end
  end

  def ended(pids)
    pids.map { |pid| Timeout.timeout(10) { Process.wait2(pid).last.exitstatus } }
  end

  def publish(count, from)
    count.times { |i| connection.publish({ "n" => "#{from}.#{i}" }, to: queue, mandatory: true) }
  end

  it "gives every process its own connection and loses nothing" do
    publish(10, "before")
    pids = Array.new(3) { |c| child { publish(10, "child#{c}") } }
    publish(10, "after")

    expect(ended(pids)).to all(eq(0))
    expect(drain(connection, queue).map(&:body).uniq.size).to eq(50)
  end

  it "works with a fork taken while other threads are in the middle of a publish" do
    publish(1, "before")
    running = true
    threads = Array.new(3) do |t|
      Thread.new do
        i = 0
        publish(1, "thread#{t}.#{i += 1}") while running
      end
    end
    pids = Array.new(10) { |c| child { publish(5, "child#{c}") } }

    expect(ended(pids)).to all(eq(0))
    running = false
    threads.each(&:join)
    expect(drain(connection, queue).count { |d| d.body.include?("child") }).to eq(50)
  end

  it "leaves the parent what it has pulled" do
    publish(2, "parent")
    connection.inbox do |inbox|
      pulled = inbox.pull(queue)
      pid = child do
        raise "it is alive" if pulled.alive? || pulled.ack

        inbox.pull(queue)
        raise "it pulls"
      rescue ArgumentError => e
        raise unless e.message.include?("before the process forked")
      end

      expect(ended([pid])).to eq([0])
      expect(pulled).to be_alive
    end
    eventually { expect(connection.message_count(queue)).to eq(2) }
  end

  it "lets a child that only exits exit at once, and leaves the parent's connection alone" do
    publish(1, "before")
    before = broker.ctl("list_connections", "pid")
    pid = fork { exit(0) } # with at_exit handlers and finalizers
    expect(ended([pid])).to eq([0])
    pid = fork do
      connection.close
      GC.start
      exit!(0)
    end
    expect(ended([pid])).to eq([0])
    publish(1, "after")

    expect(broker.ctl("list_connections", "pid")).to eq(before)
  end

  it "works in a daemon" do
    publish(1, "before")
    reader, writer = IO.pipe
    pid = fork do
      Process.daemon(true, true)
      publish(2, "daemon")
      writer.write("done")
      exit!(0)
    end
    Process.wait(pid)
    writer.close

    expect(Timeout.timeout(10) { reader.read }).to eq("done")
    expect(drain(connection, queue).size).to eq(3)
  end
end
