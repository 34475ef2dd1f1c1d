# frozen_string_literal: true

require "tmpdir"
require_relative "../faults/chaos/child"

module AceMQ
  module SpecSupport
    # Consumers in processes of their own, which can be killed, on the example's database and broker.
    module WorkerProcesses
      # What one had to say, and its process.
      class WorkerProcess < Chaos::Child
        SCRIPT = File.expand_path("../faults/handlers/worker.rb", __dir__)

        def initialize(settings, folder)
          @log = File.join(folder, "#{settings[:name]}.jsonl")
          @errors = File.join(folder, "#{settings[:name]}.err")
          super(SCRIPT, settings, output: @log, errors: @errors)
        end

        # Until then it only gets ready.
        #
        # @return [self]
        def go
          tell(go: true)
          self
        end

        # @param event [String]
        # @return [Array<Hash>]
        def said(event)
          lines = File.exist?(@log) ? File.readlines(@log).select { |line| line.end_with?("\n") } : []
          lines.map { |line| JSON.parse(line, symbolize_names: true) }.select { |line| line[:event] == event }
        end

        # @return [String]
        def complaints
          File.read(@errors)
        end

        # @return [Boolean] whether it was killed, by itself or by us
        def killed?
          !running? && status.termsig == Signal.list["KILL"]
        end

        # Lets it end by itself.
        def finish
          @stdin.close unless @stdin.closed?
          wait(15)
        end
      end

      # Killed after the example.
      #
      # @param options [Hash] see worker.rb
      # @return [WorkerProcess]
      def worker_process(queue, **options)
        @workers = (@workers || 0) + 1
        settings = { database: Database.config(database), url: broker.url, queue: queue, name: "worker#{@workers}", store: "claim",
                     claim_timeout: 2, concurrency: 2, stall: 0, mortality: 0 }.merge(options)
        WorkerProcess.new(settings, worker_folder).tap { |worker| cleanups << -> { worker.kill } }
      end

      private

      def worker_folder
        @worker_folder ||= Dir.mktmpdir.tap { |path| cleanups.unshift(-> { FileUtils.rm_rf(path) }) }
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::WorkerProcesses }
