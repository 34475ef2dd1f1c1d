# frozen_string_literal: true

require_relative "child"

module AceMQ
  module Chaos
    # A relay as the operating system sees it, and what it had to say.
    class RelayProcess < Child
      SCRIPT = File.expand_path("relay.rb", __dir__)

      # @return [String]
      attr_reader :name

      # @param name [String]
      # @param settings [Hash] see relay.rb
      # @param folder [String] where its log goes
      # @param failpoints [String, nil] for ACEMQ_FAILPOINTS
      def initialize(name, settings, folder:, failpoints: nil)
        @name = name
        @log = File.join(folder, "#{name}.jsonl")
        super(SCRIPT, settings.merge(name: name), environment: { "ACEMQ_FAILPOINTS" => failpoints.to_s },
                                                  output: @log, errors: File.join(folder, "#{name}.err"))
      end

      # Until then it only gets ready.
      #
      # @return [self]
      def go
        tell(go: true)
        self
      end

      # @return [Array<Hash>] what it said so far
      def events
        return [] unless File.exist?(@log)

        File.readlines(@log).select { |line| line.end_with?("\n") }.map { |line| JSON.parse(line, symbolize_names: true) }
      end

      # @return [Array<String>] what it told its on_error
      def errors
        events.select { |event| event[:event] == "error" }.map { |event| event[:message] }
      end

      def started?
        events.any? { |event| event[:event] == "started" }
      end

      # @return [Array<String>] what is wrong with how it ended, after SIGTERM
      def misdeeds_at_end
        last = events.find { |event| event[:event] == "stopping" }
        return ["#{name} did not end within its time"] if status.nil?
        return ["#{name} ended with #{status}"] unless status.success?
        return ["#{name} did not say goodbye"] unless last

        last[:running] ? [] : ["the thread of #{name} was dead"]
      end
    end
  end
end
