# frozen_string_literal: true

require "time"
require_relative "../operations"
require_relative "usage"

module AceMQ
  module CLI
    # `acemq relay`: the relays that the application has made, or those that the options ask for, until a signal.
    class Relaying
      # Options that name an outbox.
      OUTBOX = %i[table model shard].freeze
      # Options of relays that this makes.
      SETTINGS = %i[threads interval batch lease ordering max_attempts].freeze
      # Seconds that the broker may take to see us off, of those that stopping has left.
      GOODBYE = 2

      # @param outboxes [Enumerable<Operations::Outboxes::Named>]
      # @param options [Hash] of the command
      def initialize(outboxes, options)
        @outboxes = outboxes
        @options = options
      end

      # @return [Boolean] whether everything was settled in time
      # @raise [AMQP::ConfigurationError] for a table that is not there: waiting would not bring it
      # @raise [Thor::Error] for settings beside relays that have their own
      def run
        relays = the_applications? ? the_applications : ours
        Operations::RelayProcess.new(relays, say: method(:say), close_within: timeout, probe: probe(relays),
                                             disconnect: method(:disconnect)).run
      end

      private

      def the_applications?
        kept.any? && OUTBOX.none? { |name| given?(name) }
      end

      def the_applications
        refuse_settings
        kept.each { |relay| check(relay.store) if relay.store.respond_to?(:check!) }
        kept.each_with_index.to_h { |relay, index| [name(relay.store, index, kept.size), relay] }
      end

      def kept
        AceMQ::Rails::Relays.kept
      end

      def given?(name)
        !Array(@options[name]).empty?
      end

      def refuse_settings
        given = SETTINGS.select { |name| given?(name) }.map { |name| Usage.option(name) }
        return if given.empty?

        raise Thor::Error, "#{given.join(", ")}: the application's own relays run here, as its initializers have made them: " \
                           "say it there, or name an outbox for other relays (--table, --model, --shard)"
      end

      def ours
        threads = Integer(@options[:threads] || 1)
        raise Thor::Error, "--threads must be 1 or more, not #{threads}" unless threads.positive?

        @outboxes.flat_map do |outbox|
          check(outbox.store)
          Array.new(threads) { |index| [threads > 1 ? "#{outbox.name} ##{index + 1}" : outbox.name, relay(outbox.store)] }
        end.to_h
      end

      # A database that is away will come back; the relay waits for it.
      def check(store)
        store.check!
      rescue AMQP::ConfigurationError
        raise
      rescue StandardError => e # of ActiveRecord, or of a driver
        say("the database does not answer yet: #{e.message.lines.first.strip}")
      end

      def relay(store)
        ordering = @options[:ordering]&.to_sym
        settings = { interval: @options[:interval], batch: @options[:batch], ordering: ordering }.compact
        Usage.check { AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, store, **settings, on_error: method(:tell)) }
      end

      def tell(error, exchange:, routing_key:)
        where = " (#{exchange}/#{routing_key})" unless routing_key.empty?
        say("#{error.class}: #{one_line("#{error.message}#{where}")}")
      end

      # Whoever chooses names and keys writes no lines of their own into a log.
      def one_line(text)
        text.gsub(/[[:space:]]*[[:cntrl:]][[:space:]]*/, " ")
      end

      def name(store, index, count)
        plain = store.respond_to?(:table) ? store.table : store.class.name
        count > 1 ? "#{plain} ##{index + 1}" : plain
      end

      def timeout
        @options[:timeout] || AceMQ::Rails.config.shutdown_timeout
      end

      def probe(relays)
        return unless @options[:probe]

        require_relative "../rails/probe_server"
        host, port = address
        AceMQ::Rails::ProbeServer.new(AceMQ::Rails::Probe.new(relays: relays), host: host, port: port)
      end

      def address
        parts = /\A(?:(?<host>.+):)?(?<port>\d+)\z/.match(@options[:probe])
        raise Thor::Error, "--probe must be PORT or HOST:PORT, not #{@options[:probe].inspect}" unless parts

        [parts[:host] || "127.0.0.1", Integer(parts[:port], 10)]
      end

      # The relays are closed; what is left is the broker's goodbye.
      def disconnect(seconds)
        AceMQ::Rails.disconnect!(timeout: [seconds, GOODBYE].min)
      rescue StandardError => e
        say("the connection could not be closed cleanly: #{e.message}")
      end

      # At once, also into a pipe.
      def say(text)
        $stdout.puts "#{Time.now.utc.iso8601(3)} acemq: #{text}"
        $stdout.flush
      end
    end
  end
end
