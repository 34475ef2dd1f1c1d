# frozen_string_literal: true

require "active_record"
require "acemq_native"
require "fileutils"
require_relative "broker"
require_relative "database"
require_relative "episode"
require_relative "matrix"
require_relative "plan"
require_relative "writer_process"

module AceMQ
  module Chaos
    # Episodes one after the other, for as long as there is time.
    class Run
      FOLDER = File.expand_path("../../../tmp/chaos", __dir__)

      # What went wrong in an episode.
      Failure = Struct.new(:plan, :complaints, :folder)

      # @return [Array<Failure>]
      attr_reader :failures
      # @return [Matrix]
      attr_reader :matrix

      # @param seed [Integer]
      # @param seconds [Numeric] none begins later
      # @param databases [Array<String>]
      # @param failpoints [Array<String>]
      # @param faults [Array<String>]
      # @param only [Integer, nil] one episode, by its number
      # @param relay [Hash] keywords for the relays, on top of what an episode gives them
      # @param out [IO]
      def initialize(seed:, seconds:, databases:, failpoints: Plan::FAILPOINTS, faults: Plan::FAULTS, only: nil, relay: {},
                     out: $stdout)
        @seed = seed
        @seconds = seconds
        @names = databases
        @failpoints = failpoints
        @faults = faults
        @only = only
        @relay = relay
        @out = out
        @failures = []
        @matrix = Matrix.new
        @writers = {}
        @folder = File.join(FOLDER, "run-#{seed}-#{Process.pid}")
      end

      # @return [Boolean] whether nothing was lost, blamed wrongly, repeated too often or left waiting
      def call
        open
        deadline = clock + @seconds
        plans.each { |plan| clock < deadline ? episode(plan) : break }
        failures.empty?
      ensure
        close
      end

      private

      def open
        FileUtils.mkdir_p(@folder)
        @broker = Broker.new
        @databases = @names.to_h { |name| [name, Database.open(name)] }
      end

      def plans
        all = Plan.sequence(@seed, Plan.cells(possible, @failpoints))
        @only ? all.lazy.drop(@only - 1).first(1) : all
      end

      # @return [Hash{String => Array<String>}] faults by database
      def possible
        here = @faults.reject { |fault| fault.start_with?("broker") && !@broker.ours? }
        anywhere = here - Plan::DATABASE
        @databases.transform_values { |database| anywhere + (here & database.faults) }
      end

      def episode(plan)
        folder = File.join(@folder, format("%04d", plan.number))
        began = clock
        episode = Episode.new(plan, database: @databases[plan.database], writer: writer(plan.database), broker: @broker,
                                    folder: folder, relay: @relay)
        note(plan, episode.run, episode, folder, clock - began)
      end

      def note(plan, judgement, episode, folder, seconds)
        matrix.add(plan.cell, judgement)
        missed = ", failpoint not reached" if plan.failpoints && !episode.reached
        say "#{judgement.ok? ? "ok    " : "FAILED"} #{plan}: #{judgement.published} published, #{judgement.repeated} of " \
            "#{judgement.repeats_allowed} repeated#{missed}, #{seconds.round(1)} s"
        return FileUtils.rm_rf(folder) if judgement.ok?

        judgement.complaints.each { |complaint| say "       #{complaint}" }
        failures << Failure.new(plan, judgement.complaints, folder)
      end

      def writer(name)
        @writers[name] ||= WriterProcess.new(@databases.fetch(name).config, folder: @folder)
      end

      def close
        @writers.each_value(&:kill)
        @broker&.close
        @databases&.each_value(&:disconnect)
        FileUtils.rm_rf(@folder) if failures.empty?
      end

      def say(text)
        @out.puts text
        @out.flush
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
