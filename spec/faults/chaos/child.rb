# frozen_string_literal: true

require "json"
require "rbconfig"

module AceMQ
  module Chaos
    # A process of ours: started, watched, stopped, killed. It holds the other end of a pipe and ends with us.
    class Child
      LIB = File.expand_path("../../../lib", __dir__)

      # @return [Integer]
      attr_reader :pid
      # @return [Process::Status, nil] once it has ended
      attr_reader :status

      # @param script [String] path
      # @param settings [Hash] the script finds them, as JSON, in CHAOS
      # @param environment [Hash{String => String}]
      # @param output [IO, String] where its output goes
      # @param errors [String] file
      def initialize(script, settings, output:, errors:, environment: {})
        stdin, @stdin = IO.pipe
        output = [output, "a"] if output.is_a?(String)
        @pid = spawn(environment.merge("CHAOS" => JSON.generate(settings)), RbConfig.ruby, "-I", LIB, script,
                     in: stdin, out: output, err: [errors, "a"])
        stdin.close
      end

      # @return [Boolean]
      def running?
        look
        @status.nil?
      end

      # @return [Boolean] whether a signal has stopped it
      def stopped?
        look
        @stopped && @status.nil? ? true : false
      end

      def stop
        @stopped_at ||= clock
        signal(:STOP)
      end

      def continue
        @longest_stop = [longest_stop, clock - @stopped_at].max if @stopped_at
        @stopped_at = nil
        @stopped = false
        signal(:CONT)
      end

      # @return [Float] seconds for which it stood still at a time
      def longest_stop
        @longest_stop || 0.0
      end

      def terminate
        signal(:TERM)
        continue
      end

      # @return [Process::Status]
      def kill
        signal(:KILL)
        wait(10)
      end

      # @param seconds [Numeric]
      # @return [Process::Status, nil] nil when it still runs
      def wait(seconds)
        deadline = clock + seconds
        sleep 0.01 while running? && clock < deadline
        @status
      end

      # @param line [Hash]
      def tell(line)
        @stdin.puts(JSON.generate(line))
        @stdin.flush
      rescue Errno::EPIPE
        nil # it has ended, which its status says
      end

      private

      def signal(name)
        Process.kill(name, pid) if running?
      end

      def look
        while @status.nil? && (found = Process.wait2(pid, Process::WNOHANG | Process::WUNTRACED))
          note(found.last)
        end
      end

      def note(status)
        if status.stopped?
          @stopped_at ||= clock
          return @stopped = true
        end

        @status = status
        @stdin.close
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
