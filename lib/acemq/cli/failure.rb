# frozen_string_literal: true

require "json"
require_relative "../operations/database_failure"
require_relative "exit_code"

module AceMQ
  module CLI
    # What a command could not do, in words for the person who typed it, and as the code of its end.
    class Failure
      # Where the reader goes on.
      NEXT = {
        ExitCode::UNAVAILABLE => "acemq doctor says more",
        ExitCode::USAGE => "acemq help lists the commands"
      }.freeze

      # By name: neither library need be loaded.
      CODES = {
        "Thor::Error" => ExitCode::USAGE,
        "AceMQ::AMQP::ConfigurationError" => ExitCode::CONFIGURATION,
        "AceMQ::AMQP::TransportError" => ExitCode::UNAVAILABLE,
        "ActiveRecord::AdapterNotSpecified" => ExitCode::CONFIGURATION,
        "ActiveRecord::ActiveRecordError" => ExitCode::UNAVAILABLE
      }.freeze

      # @param error [Exception]
      # @return [Boolean] whether it is something that happens, and not a fault of somebody's code
      def self.known?(error)
        CODES.any? { |name, _| error.class.ancestors.any? { |ancestor| ancestor.name == name } }
      end

      # @param error [Exception]
      # @param json [Boolean] whether the caller reads JSON
      def initialize(error, json:)
        @error = error
        @json = json
      end

      # @return [Integer]
      def code
        @code ||= CODES.find { |name, _| @error.class.ancestors.any? { |ancestor| ancestor.name == name } }&.last ||
                  ExitCode::SOFTWARE
      end

      # @return [Integer] the code
      def report
        puts JSON.generate(error: text, exit: code) if @json
        say("acemq: #{code == ExitCode::SOFTWARE ? @error.full_message(highlight: false) : text}")
        say("       #{NEXT[code]}") if NEXT[code]
        code
      end

      private

      # Not `warn`, which says nothing under -W0.
      def say(text)
        $stderr.puts(text) # rubocop:disable Style/StderrPuts
      end

      def text
        return message unless code == ExitCode::UNAVAILABLE && Operations::DatabaseFailure.of?(@error)

        Operations::DatabaseFailure.new(@error).to_s
      end

      def message
        Operations::DatabaseFailure.message_of(@error)
      end
    end
  end
end
