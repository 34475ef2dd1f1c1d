# frozen_string_literal: true

require "socket"

RSpec.describe AceMQ::SpecSupport::Proxy do
  let(:server) { TCPServer.new("127.0.0.1", 0) }
  let(:proxy) { described_class.new(server.addr[1]) }
  let(:sockets) { [] }

  after do
    proxy.close
    [server, *sockets].each { |socket| socket.close unless socket.closed? }
  end

  # @return [Array(Socket, Socket)] the client's end and the server's
  def pair
    client = TCPSocket.new("127.0.0.1", proxy.port)
    [client, server.accept].tap { |ends| sockets.concat(ends) }
  end

  def nothing_from(socket, seconds = 0.2)
    expect(socket.wait_readable(seconds)).to be_nil
  end

  it "carries bytes both ways, and counts" do
    client, behind = pair
    client.write("up")
    expect(behind.readpartial(10)).to eq "up"
    behind.write("down")
    expect(client.readpartial(10)).to eq "down"

    pair
    expect(proxy.accepted).to eq 2
    expect(proxy.open).to eq 2
    expect(proxy.upstream).to eq 2
  end

  it "carries more than any buffer holds, unchanged" do
    client, behind = pair
    sent = Random.bytes(5 * 1024 * 1024)
    writing = Thread.new { client.write(sent) }

    expect(behind.read(sent.bytesize)).to eq sent
    writing.join
  end

  it "passes on that a side has finished, and a reset" do
    client, behind = pair
    client.write("last")
    client.close_write
    expect(behind.read).to eq "last"
    behind.write("answer")
    expect(client.readpartial(10)).to eq "answer"
    behind.close
    expect(client.read).to eq ""

    client, behind = pair
    client.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    client.close
    expect { behind.read }.to raise_error(Errno::ECONNRESET)
    eventually { expect(proxy.open).to eq 0 }
  end

  it "delays, in order" do
    client, behind = pair
    proxy.delay(0.3)
    sent_at = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    client.write("one")
    nothing_from(behind)
    client.write("two")

    expect(behind.read(6)).to eq "onetwo"
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - sent_at).to be >= 0.3
  end

  it "stalls and goes on, with nothing lost" do
    client, behind = pair
    proxy.stall
    client.write("up")
    behind.write("down")
    nothing_from(behind)
    nothing_from(client)
    silent, = pair
    silent.write("hello")
    proxy.resume

    expect(behind.readpartial(10)).to eq "up"
    expect(client.readpartial(10)).to eq "down"
  end

  it "stalls one direction" do
    client, behind = pair
    proxy.stall(:down)
    client.write("up")
    behind.write("down")

    expect(behind.readpartial(10)).to eq "up"
    nothing_from(client)
  end

  it "cuts in good order" do
    client, behind = pair
    proxy.cut

    expect(client.read).to eq ""
    expect(behind.read).to eq ""
    expect(proxy.open).to eq 0
  end

  it "resets" do
    client, behind = pair
    expect(proxy.reset).to eq 1

    expect { client.read }.to raise_error(Errno::ECONNRESET)
    expect { behind.read }.to raise_error(Errno::ECONNRESET)
  end

  it "closes one side" do
    client, behind = pair
    proxy.half_close(:server)
    expect(client.read).to eq ""
    client.write("still here")
    expect(behind.readpartial(20)).to eq "still here"
    client.close
    eventually { expect(proxy.open).to eq 0 }

    client, behind = pair
    proxy.half_close(:client)
    expect(behind.read).to eq ""
    behind.write("goodbye")
    expect(client.readpartial(20)).to eq "goodbye"
  end

  it "is gone, and there again on the same port" do
    client, = pair
    proxy.refuse
    expect { client.read }.to raise_error(Errno::ECONNRESET)
    expect { TCPSocket.new("127.0.0.1", proxy.port) }.to raise_error(Errno::ECONNREFUSED)
    proxy.resume

    expect(pair.first).not_to be_closed
  end

  it "does not keep clients while there is no server behind it" do
    proxy
    server.close
    client = TCPSocket.new("127.0.0.1", proxy.port)
    sockets << client

    expect(client.wait_readable(5)).to be_truthy
    expect(proxy.open).to eq 0
  end

  it "counts as ended what had done more than to log in" do
    client, behind = pair
    client.write("x" * 3_000)
    behind.read(3_000)
    pair
    proxy.cut

    expect(proxy.ended).to eq 1
  end

  it "answers a URL with its own port" do
    expect(proxy.url("amqp://guest:guest@127.0.0.1:5672/%2F")).to eq "amqp://guest:guest@127.0.0.1:#{proxy.port}/%2F"
    expect(proxy.url("amqp://127.0.0.1:5672")).to eq "amqp://127.0.0.1:#{proxy.port}"
  end
end
