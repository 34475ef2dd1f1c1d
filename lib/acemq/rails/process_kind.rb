# frozen_string_literal: true

module AceMQ
  module Rails
    # What this process is for, as far as that can be seen while it boots.
    #
    # @api private
    module ProcessKind
      CONSUMER = "acemq-consumer"
      # Programs of ours that relays start in. Other commands of acemq have their name behind it.
      SERVING = [CONSUMER, "acemq"].freeze
      # Tasks that are processes of their own for as long as they run.
      SERVING_TASKS = %w[acemq:consume acemq:relay].freeze

      # Loads Puma only once the application is there.
      RACKUP = "rackup"

      # Loaded only when they are asked for.
      COMMANDS = { ConsoleCommand: "the console", RunnerCommand: "rails runner", GenerateCommand: "rails generate" }.freeze

      class << self
        # @return [Boolean] whether it will go on to serve: relays start in it or in its children
        def serves?
          SERVING.include?(program) || web? || (rake_tasks & SERVING_TASKS).any?
        end

        # @return [Boolean] whether it was started to do one thing and end, or to be typed into: it dials nothing unasked
        def passing?
          !serves? && (rake_tasks.any? || !command.nil?)
        end

        # Puma loads its command line only for its own executable, and Rails its server only for `rails server`.
        #
        # @return [Boolean]
        def web?
          defined?(::Rails::Server) || defined?(::Puma::CLI) || program == RACKUP ? true : false
        end

        # @return [String] for a sentence
        def name
          return "a rake task (#{rake_tasks.join(", ")})" if rake_tasks.any?

          command || "this process (#{program})"
        end

        private

        def program
          File.basename($PROGRAM_NAME)
        end

        # `rails db:migrate` runs Rake inside of the process, and names its tasks there.
        def rake_tasks
          defined?(::Rake) && ::Rake.respond_to?(:application) ? ::Rake.application.top_level_tasks : []
        end

        # @return [String, nil]
        def command
          return program if program.start_with?("acemq ")

          COMMANDS.find { |name, _| defined?(::Rails::Command) && ::Rails::Command.const_defined?(name, false) }&.last
        end
      end
    end
  end
end
