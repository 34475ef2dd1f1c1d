# frozen_string_literal: true

require "open3"
require "socket"
require "timeout"

# Case 10 for every call that waits: Timeout and Thread#kill in a thread, SIGINT and SIGTERM to a process. Each must act
# at once, and leave nothing behind that keeps the next call from working.
RSpec.describe "An interrupt", :broker do
  on_each_database(:sqlite) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let!(:proxy) { new_proxy }
    let(:stalled) { open_connection(proxy.url(broker.url), confirm_timeout: 60, connection_timeout: 60) }
    let(:message) { { exchange: "", routing_key: queue, body: "x", message_id: "i-1", mandatory: true } }
    let(:relay) { new_relay(stalled, interval: 0.1, confirm_timeout: 20) }
    let!(:silent) do
      server = TCPServer.new("127.0.0.1", 0)
      cleanups << -> { server.close }
      "amqp://127.0.0.1:#{server.addr[1]}"
    end

    # Each waits for an answer that does not come.
    calls = {
      "publish" => -> { stalled.publish({}, to: queue) },
      "connect to a silent peer" => -> { AceMQ::AMQP::Connection.open(silent, connection_timeout: 60) },
      "pull" => -> { stalled.pull(queue) },
      "declare" => -> { stalled.declare_queue("#{queue}.other", queue_type: :classic) },
      "ticket's wait" => -> { stalled.transport.submit([message], in_flight: 1).wait(60) },
      "sweep" => -> { relay.sweep },
      "relay's close" => lambda {
        relay.start
        eventually { expect(leased).not_to be_empty }
        relay.close(timeout: 60)
      },
      "close" => -> { stalled.close(timeout: 60) }
    }

    before do
      put("r-1", to: queue)
      amqp.publish({}, to: queue) # something to pull
    end

    # Both ways to the broker are there.
    def connect
      stalled.publish({}, to: queue)
      stalled.pull(queue)
    end

    # @return [Thread] that has got to where it waits
    def waiting(&call)
      Thread.new(&call).tap do |thread|
        thread.report_on_exception = false
        eventually { expect(thread.status).to eq "sleep" }
        sleep 0.1 # a thread sleeps on its way, too
      end
    end

    # A process with a connection of its own, and no thread but the one that calls.
    #
    # @yield in the child
    # @return [Integer] its process id, when it has got to where it waits
    def waiting_process(signal, &call)
      from_child, to_parent = IO.pipe
      from_parent, to_child = IO.pipe
      pid = fork do
        [$stderr, $stdout].each { |io| io.reopen(File::NULL) }
        connect
        to_parent.write("connected")
        from_parent.read(1)
        in_child(signal, to_parent, &call)
      end
      to_parent.close
      from_child.readpartial(20)
      proxy.stall(:down)
      to_child.write(".")
      from_child.readpartial(20)
      pid
    end

    # Ruby is told of a signal by one of its threads that waits for nothing else. Here there is one when the call
    # begins, and then there is none.
    def in_child(signal, to_parent, &call)
      Signal.trap(signal, "DEFAULT")
      Thread.new { sleep(0.3) && to_parent.write("waiting") }
      call.call
      exit!(0)
    rescue SignalException => e
      exit!(e.signo)
    end

    # Whatever was interrupted, another connection of the kind works, and so does this one, unless it was closed.
    def expect_working(connection)
      connection.publish({}, to: queue, mandatory: true)
      expect(connection.pull(queue)).to be
      expect(leased).to be_empty
      expect(charged).to be_empty
    end

    calls.each do |name, call|
      it "ends #{name} at once by Timeout" do
        connect
        holding_answers(proxy) do
          took = elapsed { expect { Timeout.timeout(0.3) { instance_exec(&call) } }.to raise_error(Timeout::Error) }
          expect(took).to be < 2
          relay.close(timeout: 1)
        end
        expect_working(name == "close" ? open_connection(proxy.url(broker.url)) : stalled)
      end

      it "ends #{name} at once by Thread#kill" do
        connect
        holding_answers(proxy) do
          thread = waiting { instance_exec(&call) }
          expect(elapsed { thread.kill.join(10) }).to be < 2
          relay.close(timeout: 1)
        end
        expect_working(name == "close" ? open_connection(proxy.url(broker.url)) : stalled)
      end

      %w[INT TERM].each do |signal|
        it "ends a process in #{name} at once by SIG#{signal}" do
          pid = waiting_process(signal) { instance_exec(&call) }
          status = nil
          took = elapsed do
            Process.kill(signal, pid)
            status = Timeout.timeout(10) { Process.wait2(pid).last }
          end
          expect(status.exitstatus).to eq Signal.list.fetch(signal)
          expect(took).to be < 2
        end
      end
    end

    # What was ended is dead at once, and not only when the reader of its socket has noticed.
    it "never leaves a dead connection to the next publish" do
      30.times do
        connect
        holding_answers(proxy) { waiting { stalled.publish({}, to: queue) }.kill.join }
        expect { stalled.publish({}, to: queue) }.not_to raise_error
      end
    end
  end

  # The core is told to panic where everything is written and nothing confirmed.
  it "by a defect of the core is an ordinary error, and the next publish works" do
    script = <<~'RUBY'
      connection = AceMQ::AMQP::Connection.open(ARGV[0])
      connection.declare_queue(ARGV[1], queue_type: :classic)
      begin
        connection.publish({ "n" => 1 }, to: ARGV[1])
      rescue AceMQ::AMQP::PublishError => e
        puts e.class, e.unknown?, e.scope, e.message
      end
      connection.publish({ "n" => 2 }, to: ARGV[1], mandatory: true)
      puts connection.message_count(ARGV[1])
      connection.delete_queue(ARGV[1])
    RUBY
    said, status = Open3.capture2({ "ACEMQ_FAILPOINTS" => "after_publish=raise#1" }, RbConfig.ruby, "-I", "lib",
                                  "-racemq_native", "-e", script, broker.url, "spec.#{SecureRandom.hex(6)}", err: File::NULL)

    expect(status).to be_success
    expect(said.lines.map(&:chomp)).to match ["AceMQ::AMQP::PublishError", "true", "connection",
                                              /a defect in acemq_native/, /\A[12]\z/]
  end
end
