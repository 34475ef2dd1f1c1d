# frozen_string_literal: true

require "optparse"
require_relative "../../acemq_native/version"
require_relative "process_kind"

module AceMQ
  module Rails
    # `acemq-consumer`: boots the application and runs its consumers until a signal. What it needs of the library comes
    # with the application, which alone knows its bundle.
    #
    # @api private
    class ConsumerCommand
      FINISHED = 0
      FAILED = 1
      USAGE = 64 # sysexits' EX_USAGE
      # sysexits' EX_TEMPFAIL: handlers were still at work when time was up. Their messages come back.
      UNFINISHED = 75

      BANNER = <<~TEXT
        Usage: acemq-consumer [options]

        Runs the consumer classes of the Rails application in the current folder until SIGINT or SIGTERM, then lets the
        messages that are being handled finish (config.acemq.shutdown_timeout, 20 s unless it says otherwise).
        Exits with 0 when they did, and with 75 when time was up first: what was not finished is handled again.

      TEXT

      Options = Struct.new(:queues, :application, :reload, :quiet, keyword_init: true)

      # @param arguments [Array<String>]
      # @param output [IO]
      # @param errors [IO]
      def initialize(arguments, output: $stdout, errors: $stderr)
        @arguments = arguments
        @output = output
        @errors = errors
        @options = Options.new(queues: nil, application: "./config/application", reload: false, quiet: false)
      end

      # @return [Integer] the exit code
      def call
        done = parse
        return done if done

        name_process
        boot
        run
      rescue OptionParser::ParseError => e
        refuse("#{e.message.tr("\n", " ")}; see acemq-consumer --help", USAGE)
      rescue StandardError => e
        raise unless settled_by_a_sentence?(e)

        refuse(e.message, FAILED)
      end

      # What ends the command with a sentence instead of a backtrace.
      class Refused < StandardError; end

      private

      # @return [Integer, nil] the exit code, where all has been said
      def parse
        rest = parser.parse(@arguments)
        raise OptionParser::InvalidArgument, rest.join(" ") if rest.any?

        return unless @said

        @output.puts(@said)
        FINISHED
      end

      def parser
        OptionParser.new(BANNER) do |on|
          on.on("--queues A,B", Array, "only the consumers of these queues") { |queues| @options.queues = queues }
          on.on("-e", "--environment NAME", "the Rails environment") { |name| ENV["RAILS_ENV"] = ENV["RACK_ENV"] = name }
          on.on("--require PATH", "the application, ./config/application") { |path| @options.application = path }
          on.on("--reload", "leave code reloading as the environment has it") { @options.reload = true }
          on.on("-q", "--quiet", "no log on standard output") { @options.quiet = true }
          on.on("-v", "--version", "the version") { @said = "acemq_native #{Native::VERSION}" }
          on.on("-h", "--help", "this") { @said = on.help }
        end
      end

      # Initializers tell the consumer process by it.
      def name_process
        $PROGRAM_NAME = ProcessKind::CONSUMER unless $PROGRAM_NAME.end_with?(ProcessKind::CONSUMER)
      end

      def boot
        file = File.expand_path(@options.application)
        unless File.exist?(file) || File.exist?("#{file}.rb")
          raise Refused, "there is no application at #{file}.rb; run it in the application's folder, or say --require PATH"
        end

        require file
        application = ::Rails.application or raise Refused, "#{file} defines no Rails application"
        initialize_application(application)
        require "acemq_native"
      end

      def initialize_application(application)
        unless application.initialized?
          load_code_once(application) unless @options.reload
          application.initialize!
        end
        @output.sync = true
        log_to_output unless @options.quiet || ENV["RAILS_LOG_TO_STDOUT"]
        application.eager_load!
      end

      # Behind the environment's file, which would have its way otherwise, and before anything reads the settings. Two
      # handlers that load code at the same time can wait for each other for ever.
      def load_code_once(application)
        application.class.initializer("acemq.load_code_once", after: :load_environment_config,
                                                              before: :load_environment_hook) do |app|
          app.config.cache_classes = true
          app.config.enable_reloading = false if app.config.respond_to?(:enable_reloading=)
          app.config.eager_load = true
        end
      end

      def log_to_output
        logger = ::Rails.logger
        return if ActiveSupport::Logger.logger_outputs_to?(logger, $stdout, $stderr)

        here = ActiveSupport::Logger.new(@output, level: logger.level)
        here.formatter = ->(_, time, _, text) { "#{time.strftime("%Y-%m-%dT%H:%M:%S.%L%:z")} #{text}\n" }
        return logger.broadcast_to(here) if logger.respond_to?(:broadcast_to)

        logger.extend(ActiveSupport::Logger.broadcast(here))
      end

      def run
        classes = @options.queues ? Registry.for_queues(@options.queues) : Registry.consumers
        AceMQ::Rails.start_relays
        Runner.new.run(classes) ? FINISHED : UNFINISHED
      end

      # The library's own errors say what to do; the application's need their backtrace.
      def settled_by_a_sentence?(error)
        return true if error.is_a?(Refused)

        defined?(AMQP::TopologyError) &&
          [AMQP::ConfigurationError, AMQP::TopologyError, AMQP::TransportError].any? { |kind| error.is_a?(kind) }
      end

      def refuse(text, code)
        @errors.puts("acemq-consumer: #{text}")
        code
      end
    end
  end
end
