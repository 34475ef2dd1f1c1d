# frozen_string_literal: true

require_relative "../amqp/errors"
require_relative "failure"

module AceMQ
  module CLI
    # The application whose outbox it is: a Rails application, or a file of Ruby that connects ActiveRecord and says
    # where the broker is.
    class Application
      RAILS = "./config/environment"

      # @param path [String, nil] what to load; {RAILS} when nil
      # @param environment [String, nil] RAILS_ENV
      def initialize(path: nil, environment: nil)
        @path = path || RAILS
        @environment = environment
      end

      # @param command [String] what it is loaded for
      # @raise [AMQP::ConfigurationError] when there is no such file
      def load(command)
        ENV["RAILS_ENV"] = ENV["RACK_ENV"] = @environment if @environment
        # A relay of the application's initializers starts by itself where the program is a relay, and only there.
        $PROGRAM_NAME = command == "relay" ? "acemq" : "acemq #{command}"
        run(file)
        require_relative "../operations"
      end

      private

      # What it raises while it boots is its own; what a database or a broker is to blame for stays what it is.
      def run(file)
        require file
      rescue StandardError, ScriptError => e
        raise if Failure.known?(e)

        raise AMQP::ConfigurationError, "#{file} cannot be loaded: #{e.class}: #{e.message} (#{Array(e.backtrace).first})"
      end

      def file
        path = File.expand_path(@path)
        return path if File.file?(path) || File.file?("#{path}.rb")

        raise AMQP::ConfigurationError, "there is no #{path}#{".rb" unless path.end_with?(".rb")}: run this in the " \
                                        "application's folder, or name a file to load with --require"
      end
    end
  end
end
