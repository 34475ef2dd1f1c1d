# frozen_string_literal: true

require "socket"

module AceMQ
  module Operations
    # systemd's side of a service of `Type=notify`: told when we are ready, when we stop, and that we are alive. Without
    # systemd nothing is told to anybody.
    class ServiceManager
      # @param env [#[]] NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID
      def initialize(env = ENV)
        @address = env["NOTIFY_SOCKET"].to_s.sub(/\A@/, "\0")
        @watchdog = env["WATCHDOG_USEC"].to_i / 1_000_000.0 if [nil, "", Process.pid.to_s].include?(env["WATCHDOG_PID"])
      end

      # @return [Float, nil] seconds between two signs of life, half of what is allowed; nil when none are expected
      def watchdog_interval
        @watchdog / 2 if @watchdog&.positive?
      end

      # @param status [String] for `systemctl status`
      def ready(status)
        tell("READY=1\nSTATUS=#{status}")
      end

      # @param text [String]
      def status(text)
        tell("STATUS=#{text}")
      end

      def alive
        tell("WATCHDOG=1") if watchdog_interval
      end

      def stopping
        tell("STOPPING=1")
      end

      private

      # A service manager that does not listen is no reason to stop.
      def tell(text)
        return if @address.empty?

        socket = Socket.new(:UNIX, :DGRAM)
        socket.connect(Socket.pack_sockaddr_un(@address))
        socket.write(text)
      rescue SystemCallError, ArgumentError
        nil
      ensure
        socket&.close
      end
    end
  end
end
