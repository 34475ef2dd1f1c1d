# frozen_string_literal: true

require "acemq/operations"
require "socket"
require "tmpdir"

RSpec.describe AceMQ::Operations::ServiceManager do
  def listening(address)
    socket = Socket.new(:UNIX, :DGRAM)
    socket.bind(Socket.pack_sockaddr_un(address))
    yield -> { socket.wait_readable(2) && socket.recv(1_024) }
  ensure
    socket&.close
  end

  it "tells systemd, over a socket in a folder or an abstract one" do
    Dir.mktmpdir do |folder|
      [File.join(folder, "notify"), "\0acemq-spec-#{Process.pid}"].each do |address|
        listening(address) do |told|
          manager = described_class.new({ "NOTIFY_SOCKET" => address.sub("\0", "@"), "WATCHDOG_USEC" => "3000000" })
          manager.ready("publishing")
          manager.alive
          manager.stopping

          expect(Array.new(3) { told.call }).to eq ["READY=1\nSTATUS=publishing", "WATCHDOG=1", "STOPPING=1"]
          expect(manager.watchdog_interval).to eq 1.5
        end
      end
    end
  end

  it "gives no sign of life that nobody expects, of this process at least" do
    expect(described_class.new({}).watchdog_interval).to be_nil
    expect(described_class.new({ "WATCHDOG_USEC" => "3000000", "WATCHDOG_PID" => "1" }).watchdog_interval).to be_nil
    expect(described_class.new({ "WATCHDOG_USEC" => "3000000", "WATCHDOG_PID" => Process.pid.to_s }).watchdog_interval).to eq 1.5
  end

  it "goes on without a systemd that listens" do
    expect(described_class.new({ "NOTIFY_SOCKET" => "/nowhere/notify" }).ready("x")).to be_nil
    expect(described_class.new({ "NOTIFY_SOCKET" => "/#{"n" * 200}" }).ready("x")).to be_nil
  end
end
