# frozen_string_literal: true

require "tmpdir"
require_relative "../faults/chaos/child"
require_relative "../faults/handlers/worker"

module AceMQ
  module SpecSupport
    # Consumers in processes of their own, which can be killed, on the example's database and broker.
    module WorkerProcesses
      # What one had to say, and its process: a fork, which begins at once where a new program would have to load first.
      class WorkerProcess < Chaos::Child
        def initialize(settings, folder) # rubocop:disable Lint/MissingSuper -- which starts a program
          @log = File.join(folder, "#{settings[:name]}.jsonl")
          @errors = File.join(folder, "#{settings[:name]}.err")
          input, @stdin = IO.pipe
          @pid = fork { work(settings, input) }
          input.close
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

        private

        # Nothing of the parent's is ended here.
        def work(settings, input)
          @stdin.close
          srand
          $stderr.reopen(@errors, "a").sync = true
          Faults::Worker.new(settings, input, File.open(@log, "a")).run
          exit!(0)
        rescue Exception => e # rubocop:disable Lint/RescueException -- goes no further
          $stderr.write("#{e.full_message}\n")
          exit!(1)
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
