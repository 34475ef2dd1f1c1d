# frozen_string_literal: true

require "etc"
require "fileutils"
require "socket"
require "timeout"
require_relative "guard"

module AceMQ
  module TestServers
    # A server did not come up, or its programs are not installed.
    class StartError < StandardError
    end

    # The life of one server process: prepared once, started, stopped, killed, paused.
    # Subclasses say what to run and when it is ready.
    class Server
      START_TIMEOUT = 120 # seconds; a loaded machine takes its time, a broken server exits and is noticed at once
      STOP_TIMEOUT = 30
      HOST = "127.0.0.1"
      ROOT = File.expand_path("../../../tmp/servers", __dir__)

      # Started servers of this process, newest first, to be ended with it.
      @started = []

      class << self
        attr_reader :started

        def end_with_this_process(server)
          owner = Process.pid
          Server.started.unshift(server)
          at_exit { server.dispose if Process.pid == owner } # a forked child inherits the block, not the server
        end

        # @return [Array<Integer>] free at this moment, all different
        def free_ports(count)
          sockets = Array.new(count) { TCPServer.new(HOST, 0) }
          sockets.map { |socket| socket.addr[1] }
        ensure
          sockets&.each(&:close)
        end

        def serial
          @serial = (@serial || 0) + 1
        end
      end

      attr_reader :folder, :port

      def initialize
        @folder = File.join(data_root, "#{label}-#{Process.pid}-#{Server.serial}")
        @port, = Server.free_ports(1)
      end

      def ours?
        true
      end

      # Starts the server, or again after {#stop} or {#kill} with the same port and data.
      # @return [self] once it answers
      # @raise [StartError] with the end of its log
      def start
        return self if running?

        prepare_once
        launch
        wait_until_ready
        self
      rescue StandardError, Interrupt
        end_process("KILL")
        raise
      end

      # In good order, as an operator would.
      def stop
        end_process(stop_signal)
      end

      # As a power cut would.
      def kill
        end_process("KILL")
      end

      # The process stays, its sockets stay, nothing answers: from the moment this returns. Until all threads of the
      # group have stopped, one of them may still answer.
      def pause
        signal("STOP")
        sleep 0.005 until threads_of_the_group.all? { |state| %w[T Z X].include?(state) }
      end

      def resume
        signal("CONT")
      end

      def running?
        return false unless @group
        return true unless Process.wait(@group, Process::WNOHANG)

        forget_process
        false
      end

      # @return [Integer] of the process group's first process
      def pid
        @group
      end

      # Kills the server and removes its data.
      def dispose
        resume if running?
        end_process(quick_signal)
        FileUtils.rm_rf(folder)
      end

      def inspect
        "#<#{self.class.name} port=#{port} #{running? ? "running" : "stopped"}>"
      end

      private

      def label
        self.class.name.split("::").last.downcase
      end

      def data_root
        ROOT
      end

      def log
        File.join(folder, "server.log")
      end

      def prepare_once
        return if @prepared

        FileUtils.mkdir_p(folder)
        Server.end_with_this_process(self)
        prepare
        @prepared = true
      end

      def launch
        @group = spawn(environment, *command, in: File::NULL, out: [log, "a"], err: %i[child out],
                                              pgroup: true, chdir: folder)
        @guard = Guard.new(signal: quick_signal, group: @group, folder: folder)
      end

      def wait_until_ready
        deadline = now + START_TIMEOUT
        until ready?
          raise StartError, "#{label} ended while starting#{log_tail}" unless running?
          raise StartError, "#{label} did not answer within #{START_TIMEOUT} s#{log_tail}" if now > deadline

          sleep 0.05
        end
        ready
      end

      # What is left to do once the server answers.
      def ready; end

      def environment
        {}
      end

      def stop_signal
        "TERM"
      end

      def quick_signal
        "KILL"
      end

      def signal(name)
        Process.kill(name, -@group)
      end

      # @return [Array<String>] states as /proc has them
      def threads_of_the_group
        Dir["/proc/[0-9]*/task/*/stat"].filter_map do |path|
          state, _parent, group = File.read(path).rpartition(")").last.split
          state if group.to_i == @group
        rescue SystemCallError
          nil
        end
      end

      def end_process(name)
        return unless running?

        Process.kill(name, name == "KILL" ? -@group : @group)
        wait_for_end
      end

      def wait_for_end
        deadline = now + STOP_TIMEOUT
        sleep 0.02 while running? && now < deadline
        return unless running?

        signal("KILL")
        Process.wait(@group)
        forget_process
      end

      def forget_process
        @group = nil
        @guard&.release
        @guard = nil
      end

      # Runs a tool of the server's package to its end.
      def run(*tool, env: {})
        output = IO.popen(env, tool, err: %i[child out], in: File::NULL, chdir: folder, &:read)
        raise StartError, "#{tool.join(" ")} failed:\n#{output}" unless $?.success?

        output
      end

      # @return [String] the newest program of that name; Debian keeps servers outside of PATH
      def program(*patterns, package:)
        patterns.flat_map { |pattern| Dir.glob(pattern) }.max_by { |path| path.scan(/\d+/).map(&:to_i) } ||
          raise(StartError, "#{patterns.join(" or ")} is not here; install it (Debian: apt-get install #{package})")
      end

      def log_tail
        return "" unless File.exist?(log)

        ", its log (#{log}) ends with:\n#{File.readlines(log).last(15).join}"
      end

      def root?
        Process.euid.zero?
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
