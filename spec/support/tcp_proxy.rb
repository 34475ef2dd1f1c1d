# frozen_string_literal: true

require "socket"

module AceMQ
  module SpecSupport
    # Stands between a client and a server, counts the dials, and misbehaves when told to.
    class TcpProxy
      CHUNK = 64 * 1024

      # @return [Integer] connections that were asked for
      attr_reader :dials
      # @return [Integer] bytes taken from clients
      attr_reader :upstream

      # @param port [Integer] of the server behind it
      def initialize(port, host: "127.0.0.1")
        @target = [host, port]
        @listener = TCPServer.new("127.0.0.1", 0)
        @dials = 0
        @upstream = 0
        @lock = Mutex.new
        @answers = ConditionVariable.new
        @holding = false
        @down = false
        @pairs = []
        @acceptor = Thread.new { accept }
        @acceptor.report_on_exception = false
      end

      def port = @listener.addr[1]

      # @param url [String] of the server
      # @return [String] of the proxy
      def url(url) = url.sub(%r{:\d+(?=/)}, ":#{port}")

      # New connections are closed at once, and those there are, are reset.
      def down
        @down = true
        cut
      end

      def up = @down = false

      # Resets every connection, as a failing network does.
      def cut
        pairs = @lock.synchronize { @pairs.tap { @pairs = [] } }
        pairs.flatten.each { |socket| reset(socket) }
      end

      # What the server says is kept back for the time of the block.
      def holding_answers
        @lock.synchronize { @holding = true }
        yield
      ensure
        @lock.synchronize do
          @holding = false
          @answers.broadcast
        end
      end

      def close
        @acceptor.kill
        @listener.close
        cut
      end

      private

      def accept
        loop do
          client = @listener.accept
          @dials += 1
          @down ? client.close : serve(client)
        rescue SystemCallError, IOError
          return if @listener.closed?
        end
      end

      def serve(client)
        server = TCPSocket.new(*@target)
        @lock.synchronize { @pairs << [client, server] }
        pump(client, server) { |bytes| @lock.synchronize { @upstream += bytes } }
        pump(server, client) { @lock.synchronize { @answers.wait(@lock) while @holding } }
      rescue SystemCallError
        client.close
      end

      def pump(from, to)
        Thread.new do
          loop do
            data = from.readpartial(CHUNK)
            yield data.bytesize
            to.write(data)
          end
        rescue SystemCallError, IOError
          [from, to].each { |socket| socket.close unless socket.closed? }
        end
      end

      def reset(socket)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
        socket.close
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
