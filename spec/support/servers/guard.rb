# frozen_string_literal: true

module AceMQ
  module TestServers
    # Ends a server when the process that started it is gone, however it went: `kill -9` runs no at_exit.
    # A shell waits on a pipe that only we hold open; it reads a line when the server has been stopped in good
    # order, and end of file when we died.
    class Guard
      SCRIPT = <<~'SH'
        signal=$1 group=$2 folder=$3
        read -r released && exit 0
        kill -s "$signal" -- -"$group" 2>/dev/null
        kill -s CONT -- -"$group" 2>/dev/null
        for tenth in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
          kill -s 0 -- -"$group" 2>/dev/null || break
          sleep 0.1
        done
        kill -s KILL -- -"$group" 2>/dev/null
        rm -rf -- "$folder"
      SH

      # @param signal [String] the one that makes the server end at once
      # @param group [Integer] process group of the server
      # @param folder [String] removed with the server
      def initialize(signal:, group:, folder:)
        stdin, @line = IO.pipe
        @pid = spawn("/bin/sh", "-c", SCRIPT, "acemq-server-guard", signal, group.to_s, folder,
                     in: stdin, out: File::NULL, err: File::NULL, pgroup: true)
        stdin.close
      end

      def release
        @line.puts("released")
      rescue Errno::EPIPE
        nil # somebody ended the guard: nothing left to tell it
      ensure
        @line.close
        Process.wait(@pid)
      end
    end
  end
end
