# frozen_string_literal: true

require "json"
require "thor"
require_relative "application"
require_relative "duration"
require_relative "exit_code"
require_relative "progress"
require_relative "text/status"
require_relative "text/doctor"
require_relative "usage"

module AceMQ
  module CLI
    # The commands. Each loads the application, lets {Operations} do the work, shows what came of it, and answers its
    # exit code.
    class Main < Thor
      def self.exit_on_failure?
        true
      end

      def self.basename
        "acemq"
      end

      # Options that count something.
      WHOLE = %i[threads batch limit max_attempts].freeze

      # A misspelt option is not an id, and not a queue.
      check_unknown_options!

      class_option :require, aliases: "-r", banner: "PATH", desc: "The application, or a file of Ruby; ./config/environment " \
                                                                  "unless given"
      class_option :environment, aliases: "-e", banner: "NAME", desc: "RAILS_ENV"
      class_option :table, banner: "NAME", desc: "The outbox's table; acemq_outbox unless given"
      class_option :model, type: :array, default: [], banner: "CLASS ...", desc: "ActiveRecord classes, an outbox in the database of each"
      class_option :shard, type: :array, default: [], banner: "NAME ...", desc: "Shards, an outbox in each"
      class_option :max_attempts, type: :numeric, desc: "Failures of its own after which a row is retired, as in the " \
                                                        "application's store; 10 unless given"
      class_option :help, aliases: "-h", type: :boolean, desc: "What a command does, and what its options are"

      no_commands do
        # Before the application is loaded, and whatever else the command needs.
        def invoke_command(command, *)
          return help(command.name) if options[:help]

          WHOLE.each { |name| Usage.whole!(options[name], name) }
          super
        end
      end

      desc "relay", "Publish what the outbox holds, until INT or TERM"
      long_desc <<~TEXT
        Runs the relays that the application's initializers have started, with their settings. Where there are none, or
        --model, --shard or --table is given, it runs relays of its own, which --threads, --interval, --batch, --lease and
        --ordering are about; on the plain outbox unless told otherwise.

        INT and TERM stop claiming and wait for what is out; TSTP pauses, CONT goes on, TTIN writes the stack of every
        thread. Tells systemd when it is ready, and that it is alive (Type=notify, WatchdogSec).
      TEXT
      method_option :threads, type: :numeric, desc: "Relays on each outbox; 1 unless given"
      method_option :interval, type: :numeric, desc: "Seconds between two looks at an empty outbox"
      method_option :batch, type: :numeric, desc: "Rows of a claim"
      method_option :lease, type: :numeric, desc: "Seconds that a claim stands unless it is renewed; 30 unless given"
      method_option :ordering, enum: %w[destination strict none], desc: "What has to wait for what"
      method_option :probe, banner: "[HOST:]PORT", desc: "Answer /live, /ready and /metrics there; on 127.0.0.1 unless a host is given"
      method_option :timeout, type: :numeric, desc: "Seconds that stopping may take; the setting shutdown_timeout unless given"
      def relay
        boot("relay")
        require_relative "relaying"
        Relaying.new(outboxes(lease: options[:lease]), options).run ? ExitCode::OK : ExitCode::UNFINISHED
      end

      desc "status", "The backlog, what stands still, and who is at work"
      method_option :json, type: :boolean, desc: "For programs: an array, one object for each outbox"
      method_option :watch, lazy_default: "2", banner: "[SECONDS]", desc: "Again and again, until Ctrl-C"
      def status
        pause = duration(:watch)
        boot("status")
        loop do
          show_status(outboxes.map { |outbox| Operations::Status.new(outbox) })
          break unless pause

          sleep(pause)
        end
        ExitCode::OK
      end

      desc "drain", "Publish the backlog, and stop"
      method_option :timeout, banner: "TIME", desc: "Stop after this long (45s, 15m, 2h), whatever is left"
      method_option :patience, default: "35s", banner: "TIME", desc: "Stop when nothing has gone out for this long"
      method_option :batch, type: :numeric, desc: "Rows of a claim"
      method_option :lease, type: :numeric, default: 30, desc: "Seconds that a claim stands"
      method_option :json, type: :boolean, desc: "A line of JSON for each step"
      def drain
        limits = { timeout: duration(:timeout), patience: duration(:patience) }
        boot("drain")
        results = outboxes(lease: options[:lease]).map { |outbox| drain_one(outbox, limits) }
        return ExitCode::OK if results.all?(&:done?)

        results.any? { |result| away?(result) } ? ExitCode::UNAVAILABLE : ExitCode::UNFINISHED
      ensure
        disconnect
      end

      desc "retry [ID ...]", "Bring retired rows back"
      method_option :destination, banner: "[EXCHANGE/]KEY", desc: "Only those of this exchange and routing key"
      method_option :error, banner: "TEXT", desc: "Only those whose last_error has this text in it"
      method_option :all, type: :boolean, desc: "All of them"
      method_option :dry_run, type: :boolean, desc: "Only list them"
      method_option :json, type: :boolean, desc: "For programs"
      def retry(*ids)
        refuse_to_guess(ids)
        boot("retry")
        require_relative "retrying"
        Retrying.new(outboxes, ids, options).run
      end

      desc "purge", "Remove published rows and idempotency keys that are past their time"
      method_option :older_than, default: "7d", banner: "TIME", desc: "Keep what was published since: 12h, 30d"
      method_option :only, enum: %w[outbox idempotency], desc: "One of the two tables; both unless given"
      method_option :idempotency_table, banner: "NAME", desc: "acemq_idempotency unless given"
      method_option :batch, type: :numeric, default: 500, desc: "Rows of one statement"
      method_option :pause, type: :numeric, default: 0.05, desc: "Seconds between two statements"
      method_option :dry_run, type: :boolean, desc: "Only count"
      method_option :json, type: :boolean, desc: "For programs"
      def purge
        older_than = duration(:older_than)
        boot("purge")
        require_relative "purging"
        Purging.new(outboxes, options, older_than).run
      end

      desc "replay QUEUE", "Move messages back to where they are handled: dead letters of a mended cause, above all"
      method_option :to, banner: "[EXCHANGE/]KEY", desc: "Where they go; the queue that a .dlq or .parked belongs to unless given"
      method_option :limit, type: :numeric, default: 0, desc: "Messages to move at most; 0 for all"
      method_option :error, banner: "TEXT", desc: "Only those whose error has this text in it"
      method_option :type, banner: "NAME", desc: "Only those of this type"
      method_option :id, desc: "Only this one"
      method_option :deadline, default: "0s", banner: "TIME", desc: "Begin no other message after this long (45s, 15m)"
      method_option :keep_attempts, type: :boolean, desc: "Do not begin again at attempt 1"
      method_option :dry_run, type: :boolean, desc: "Only count them"
      method_option :json, type: :boolean, desc: "For programs"
      def replay(queue)
        deadline = duration(:deadline)
        boot("replay")
        require_relative "replaying"
        Replaying.new(queue, options, deadline).run
      ensure
        disconnect
      end

      desc "doctor", "Whether everything is as it has to be, and what to do where it is not"
      method_option :json, type: :boolean, desc: "For programs"
      method_option :idempotency_table, banner: "NAME", desc: "acemq_idempotency unless given"
      method_option :management, banner: "URL", desc: "The broker's management plugin, http://user:password@host:15672: tells " \
                                                      "permissions and bindings too"
      def doctor
        boot("doctor")
        asked = { idempotency: options[:idempotency_table], management: options[:management] }
        doctor = Usage.check { Operations::Doctor.new(outboxes, AceMQ::Rails.connection, **asked) }
        findings = doctor.examine
        puts options[:json] ? JSON.generate(findings.map(&:to_h)) : Text::Doctor.new(findings)
        findings.any?(&:error?) ? ExitCode::FOUND : ExitCode::OK
      ensure
        disconnect
      end

      private

      def boot(command)
        Application.new(path: options[:require], environment: options[:environment]).load(command)
      end

      # @return [Float, nil] seconds
      def duration(name)
        Duration.parse(options[name], name) if options[name]
      end

      def outboxes(**more)
        settings = { max_attempts: options[:max_attempts], **more }.compact
        Usage.check do
          Operations::Outboxes.chosen(table: options[:table], models: options[:model], shards: options[:shard], **settings)
        end
      end

      # At once, also into a pipe.
      def show_status(found)
        print "\e[H\e[2J" if options[:watch] && $stdout.tty? && !options[:json]
        puts options[:json] ? JSON.generate(found.map(&:to_h)) : found.map { |one| Text::Status.new(one) }
        $stdout.flush
      end

      def drain_one(outbox, limits)
        settings = { batch: options[:batch] }.compact
        relay = Usage.check { AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, outbox.store, **settings) }
        progress = Progress.new(outbox.name, json: options[:json])
        Operations::Drain.new(relay, **limits).run { |step| progress.drained(step) }
                         .tap { |last| progress.drained(last, last: true) }
      end

      # Nothing was published, and it is not a destination that stood in the way.
      def away?(result)
        result.error.respond_to?(:scope) && result.error.scope == :connection
      end

      def refuse_to_guess(ids)
        return if ids.any? || options.values_at(:destination, :error, :all).any?

        raise Thor::Error, "retry needs ids, --destination, --error or --all; acemq status says how many are retired"
      end

      def disconnect
        AceMQ::Rails.disconnect! if defined?(AceMQ::Rails)
      end
    end
  end
end
