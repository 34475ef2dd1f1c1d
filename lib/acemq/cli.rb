# frozen_string_literal: true

begin
  require "thor"
rescue LoadError
  # Not `warn`, which says nothing under -W0.
  # rubocop:disable Style/StderrPuts
  $stderr.puts "acemq: the commands need the library Thor, which comes with railties: add `gem \"thor\"` to the Gemfile, or " \
               "install Debian's ruby-thor"
  # rubocop:enable Style/StderrPuts
  exit 78
end

require "json"
require_relative "cli/exit_code"
require_relative "cli/failure"
require_relative "cli/main"

module AceMQ
  # The command line, `exe/acemq`.
  module CLI
    class << self
      # @param arguments [Array<String>]
      # @return [Integer] see {ExitCode}
      def run(arguments)
        code = Main.start(arguments, debug: true)
        code.is_a?(Integer) ? code : ExitCode::OK
      rescue Interrupt
        puts JSON.generate(error: "interrupted", exit: ExitCode::INTERRUPTED) if json?(arguments)
        ExitCode::INTERRUPTED
      rescue SignalException, SystemExit
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever the application's own code raises while it boots
        Failure.new(e, json: json?(arguments)).report
      end

      private

      def json?(arguments)
        arguments.include?("--json")
      end
    end
  end
end
