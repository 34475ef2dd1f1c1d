# frozen_string_literal: true

require "socket"
require_relative "proxy/connection"

module AceMQ
  module SpecSupport
    # Stands between clients and a server and fails as networks do: slow, silent, cut, reset, closed on one side, or
    # not there at all. One thread does everything, so a busy test costs it little; give it a process other than the
    # one that is tested, or one that mostly waits.
    #
    # @example
    #   proxy = AceMQ::SpecSupport::Proxy.new(5672)
    #   client.connect("127.0.0.1", proxy.port)
    #   proxy.stall   # nothing moves any more, connections stay
    #   proxy.resume
    class Proxy
      HOST = "127.0.0.1"
      # What a client has sent by the time that it has logged in and opened a channel, and before it has published anything.
      LOGIN = 600 # bytes

      # @return [Integer]
      attr_reader :port

      # @param target_port [Integer] of the server behind it
      def initialize(target_port, target_host: HOST)
        @target = [target_host, target_port]
        @connections = []
        @accepted = @ended = 0
        @delay = 0.0
        @stalled = []
        @requests = Thread::Queue.new
        @woken, @wake = IO.pipe
        listen(0)
        @port = @listener.addr[1]
        @thread = Thread.new { turn until @closed }
        @thread.name = "proxy"
        @thread.abort_on_exception = true
      end

      # @param url [String] of the server
      # @return [String] of the proxy
      def url(url)
        url.sub(%r{:\d+(?=/|\z)}, ":#{port}")
      end

      # @return [Integer] connections that were accepted since it was made
      def accepted
        perform { @accepted }
      end

      # @return [Integer] connections there are
      def open
        perform { @connections.size }
      end

      # @return [Integer] connections that ended after their client had sent more than a login
      def ended
        perform { @ended }
      end

      # @return [Integer] bytes that clients have sent, over the connections there are
      def upstream
        perform { @connections.sum { |connection| connection.up.bytes } }
      end

      # @return [Integer] bytes that the server has sent, over the connections there are
      def downstream
        perform { @connections.sum { |connection| connection.down.bytes } }
      end

      # Everything arrives so much later, in both directions.
      #
      # @param seconds [Numeric] 0 ends it
      def delay(seconds)
        perform { @delay = seconds.to_f }
      end

      # Nothing moves any more and nothing is closed. New connections are accepted and stay silent.
      #
      # @param direction [Symbol] :up (to the server), :down (to clients) or :both
      def stall(direction = :both)
        perform { @stalled = direction == :both ? %i[up down] : [direction] }
      end

      # Whatever {#delay}, {#stall}, {#refuse} or {#turn_away} did is over; what was held back goes on its way.
      def resume
        perform do
          @delay = 0.0
          @stalled = []
          @turning_away = false
          listen(port) unless @listener
        end
      end

      # Ends every connection in good order, as a proxy does that is restarted.
      #
      # @return [Integer] connections ended
      def cut
        perform { each_connection(&:close) }
      end

      # Ends every connection by a reset, both ways.
      #
      # @return [Integer] connections ended
      def reset
        perform { each_connection(&:reset) }
      end

      # One side of every connection is told that the other one has nothing more to say.
      #
      # @param side [Symbol] who falls silent: :client or :server
      def half_close(side)
        perform { @connections.each { |connection| connection.half_close(side) } }
      end

      # Nobody listens any more, and the connections there are, are reset.
      def refuse
        perform do
          @listener&.close
          @listener = nil
          each_connection(&:reset)
        end
      end

      # New connections are accepted, counted and reset, and those there are, are reset: {#refuse} for specs that ask
      # how often somebody knocked.
      def turn_away
        perform do
          @turning_away = true
          each_connection(&:reset)
        end
      end

      # @return [nil]
      def close
        perform { @closed = true }
        @thread.join
        [*@connections, @listener, @woken, @wake].compact.each(&:close)
        nil
      end

      private

      # The thread alone touches sockets and counters, so nothing else needs a lock.
      def perform(&request)
        answer = Thread::Queue.new
        @requests << -> { answer << request.call }
        @wake.write(".")
        answer.pop
      end

      def listen(port)
        @listener = TCPServer.new(HOST, port)
      end

      def turn
        sources, sinks = moving_now
        readable, writable = IO.select([@woken, @listener, *sources.keys].compact, sinks.keys, nil, patience)
        return answer_requests if readable&.include?(@woken)

        accept if readable&.delete(@listener)
        now = clock
        each_live(readable) { |io| sources.fetch(io).read(now + @delay) }
        each_live(writable) { |io| sinks.fetch(io).write(now) }
        count_and_forget_ended
      end

      # What was ready when one came may not move any more, so the turn ends with it.
      def answer_requests
        @woken.read_nonblock(1_000)
        @requests.pop.call until @requests.empty?
      end

      # The failure of one side closes the other.
      def each_live(ready)
        Array(ready).each { |io| yield io unless io.closed? }
      end

      # @return [Array<Hash{Socket => Direction}>] what may be read, and what is to be written
      def moving_now
        now = clock
        [moving.select(&:readable?).to_h { |direction| [direction.from, direction] },
         moving.select { |direction| direction.due?(now) }.to_h { |direction| [direction.to, direction] }]
      end

      def moving
        @connections.flat_map { |connection| connection.directions(except: @stalled) }
      end

      # Until the next byte is due; for ever when none is held back.
      def patience
        due = moving.filter_map(&:due_at).min
        due && [due - clock, 0].max
      end

      def accept
        client = @listener.accept_nonblock(exception: false)
        return if client == :wait_readable

        @accepted += 1
        return Connection.reset(client) if @turning_away

        @connections << Connection.new(client, TCPSocket.new(*@target))
      rescue SystemCallError
        Connection.reset(client) if client # the server does not listen
      end

      def each_connection(&block)
        @connections.each(&block).size.tap { count_and_forget_ended }
      end

      def count_and_forget_ended
        gone = @connections.select(&:over?)
        return if gone.empty?

        @ended += gone.count { |connection| connection.up.bytes > LOGIN }
        @connections -= gone
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
