# frozen_string_literal: true

require "socket"
require_relative "../amqp/clock"
require_relative "probe"

module AceMQ
  module Rails
    # As much of an HTTP server as a probe and a scraper need, for processes that have none.
    class ProbeServer
      REASONS = { 200 => "OK", 404 => "Not Found", 405 => "Method Not Allowed", 500 => "Internal Server Error",
                  503 => "Service Unavailable" }.freeze
      # Seconds for a client to say what it wants.
      PATIENCE = 5.0
      # Seconds until the next client is taken in when there was no room for one.
      PAUSE = 0.1
      # Bytes of a request's head.
      LONGEST = 8_192

      # @return [Integer]
      attr_reader :port

      # @param app [#call] a Rack application
      # @param port [Integer] 0 for any that is free
      # @param host [String] an address of this machine; 127.0.0.1 is seen from nowhere else
      def initialize(app, port:, host: "127.0.0.1")
        @app = app
        @host = host
        @port = port
      end

      # @return [self]
      # @raise [AMQP::ConfigurationError] when the port is taken, or the address none of this machine's
      def start
        @server = listen
        @port = @server.addr[1]
        @thread = Thread.new { accept }
        @thread.name = "acemq-probe"
        self
      end

      # @return [nil]
      def stop
        @server&.close
        @thread&.join(1)
        nil
      end

      private

      def listen
        TCPServer.new(@host, @port)
      rescue SystemCallError, SocketError => e
        raise AMQP::ConfigurationError, "the probe cannot listen on #{@host}:#{@port}: #{e.message}"
      end

      def accept
        take_in until @server.closed?
      end

      # What is wrong with one client, or with this moment (no descriptor is free, say), is not with the next.
      def take_in
        Thread.new(@server.accept) { |socket| serve(socket) }
      rescue IOError, SystemCallError, ThreadError
        sleep(PAUSE) unless @server.closed?
      end

      def serve(socket)
        head = read_head(socket) or return
        status, headers, body = respond_to_head(head)
        text = body.join
        socket.write("HTTP/1.1 #{status} #{REASONS.fetch(status, "")}\r\n",
                     *headers.map { |name, value| "#{name}: #{value}\r\n" },
                     "content-length: #{text.bytesize}\r\nconnection: close\r\n\r\n", head.start_with?("HEAD ") ? "" : text)
      rescue SystemCallError, IOError
        nil # the client has gone
      ensure
        socket.close
      end

      # @return [String, nil] nil for a client that does not come to an end
      def read_head(socket)
        deadline = AMQP::Clock.now + PATIENCE
        head = +""
        until head.include?("\r\n\r\n") || head.bytesize > LONGEST
          return unless socket.wait_readable([deadline - AMQP::Clock.now, 0].max)

          head << socket.readpartial(1_024)
        end
        head
      end

      def respond_to_head(head)
        method, target = head.split(" ", 3)
        return [405, {}, []] unless %w[GET HEAD].include?(method)

        @app.call("REQUEST_METHOD" => method, "PATH_INFO" => target.to_s[/\A[^?]*/], "SCRIPT_NAME" => "")
      rescue StandardError => e
        AceMQ::Rails.logger.error("acemq: the probe could not answer: #{e.class}: #{e.message}")
        [500, {}, []]
      end
    end
  end
end
