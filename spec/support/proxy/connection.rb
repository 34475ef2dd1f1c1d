# frozen_string_literal: true

require "socket"

module AceMQ
  module SpecSupport
    class Proxy
      # What one side sends to the other: read, held back for as long as the delay says, written.
      class Direction
        CHUNK = 64 * 1024
        # Bytes held back at most; beyond it nothing is read, and the sender feels the pressure.
        HELD = 1024 * 1024

        # @return [Socket]
        attr_reader :from, :to
        # @return [Integer] bytes read so far
        attr_reader :bytes

        def initialize(from, to, connection)
          @from = from
          @to = to
          @connection = connection
          @held = []
          @bytes = @holding = 0
        end

        def readable?
          !@ended && @holding < HELD
        end

        # @return [Float, nil] when there is something to do; nil while nothing is held back
        def due_at
          @held.first&.first
        end

        def due?(now)
          due_at ? due_at <= now : false
        end

        # @param due [Float] when it may go on
        def read(due)
          data = from.read_nonblock(CHUNK, exception: false)
          return if data == :wait_readable
          return hold(due, nil) if data.nil?

          @bytes += data.bytesize
          hold(due, data)
        rescue SystemCallError
          @connection.reset
        end

        def write(now)
          while due?(now) && !@connection.over?
            data = @held.first.last
            return finish if data.nil?

            written = to.write_nonblock(data, exception: false)
            return if written == :wait_writable

            taken(data, written)
          end
        rescue SystemCallError
          @connection.reset
        end

        # What is held back is gone, as in a cable that is pulled.
        def end_now
          @held.clear
          finish
        rescue SystemCallError
          @connection.reset
        end

        def finished?
          @finished ? true : false
        end

        private

        # nil stands for the end.
        def hold(due, data)
          @ended = true if data.nil?
          @holding += data.to_s.bytesize
          @held << [due, data]
        end

        def taken(data, written)
          @holding -= written
          @held.shift
          @held.unshift([0.0, data.byteslice(written..)]) if written < data.bytesize
        end

        def finish
          @held.clear
          @ended = @finished = true
          to.close_write
          @connection.close if @connection.finished?
        end
      end

      # A client, the server, and what goes both ways.
      class Connection
        # Closes a socket so that its peer sees a reset.
        def self.reset(socket)
          return if socket.closed?

          socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
          socket.close
        rescue SystemCallError
          socket.close
        end

        # @return [Direction] to the server, and to the client
        attr_reader :up, :down

        def initialize(client, server)
          [client, server].each { |socket| socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1) }
          @client = client
          @server = server
          @up = Direction.new(client, server, self)
          @down = Direction.new(server, client, self)
        end

        # @param except [Array<Symbol>] directions in which nothing moves
        def directions(except: [])
          return [] if over?

          (%i[up down] - except).map { |name| name == :up ? up : down }
        end

        def half_close(side)
          (side == :client ? up : down).end_now unless over?
        end

        def close
          [@client, @server].each { |socket| socket.close unless socket.closed? }
        end

        def reset
          [@client, @server].each { |socket| Connection.reset(socket) }
        end

        def over?
          @client.closed?
        end

        def finished?
          up.finished? && down.finished?
        end
      end
    end
  end
end
