# frozen_string_literal: true

require "timeout"
require_relative "child"

module AceMQ
  module Chaos
    # The writers' process, and what it says was committed.
    class WriterProcess < Child
      SCRIPT = File.expand_path("writer.rb", __dir__)
      THREADS = 2
      # Before ActiveRecord 8 a thread that waits for a locked file keeps the one that has locked it from going on.
      THREADS_OF_SQLITE = 1
      HALT_WITHIN = 60 # seconds; a transaction may wait for a database that is coming back

      # @return [Array<String>] ids of which the writer knows that they are committed, since it last began
      attr_reader :acknowledged

      def initialize(database, folder:)
        threads = database[:adapter] == "sqlite3" ? THREADS_OF_SQLITE : THREADS
        @lines, out = IO.pipe
        @halted = Thread::Queue.new
        @acknowledged = []
        super(SCRIPT, { database: database, threads: threads }, output: out, errors: File.join(folder, "writer.err"))
        out.close
        @reader = Thread.new { read }
      end

      # @param lanes [Array<Array(String, String)>]
      # @param pace [Float] seconds between two transactions of a thread
      def write(lanes, seed:, pace:)
        @acknowledged = []
        tell(write: { lanes: lanes, seed: seed, pace: pace })
      end

      # @return [Boolean] whether it came to a halt
      def halt
        tell(halt: true)
        Timeout.timeout(HALT_WITHIN) { @halted.pop } && true
      rescue Timeout::Error
        false
      end

      private

      def read
        @lines.each_line do |line|
          said = JSON.parse(line, symbolize_names: true)
          said[:halted] ? @halted << said : @acknowledged.concat(said[:committed])
        end
      end
    end
  end
end
