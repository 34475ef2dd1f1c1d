# frozen_string_literal: true

require "json"
require "time"
require_relative "../metrics"
require_relative "probe/databases"
require_relative "probe/outboxes"
require_relative "probe/page"

module AceMQ
  module Rails
    # Answers over HTTP how this process and its outboxes are. A Rack application, to be mounted; `acemq relay --probe`
    # serves it as well.
    #
    # | path | answers |
    # |---|---|
    # | `/live` | 200; 503 when the thread of a relay is dead, which only a new process mends |
    # | `/ready` | 200; 503 while a database does not answer, or a relay of this process has no broker |
    # | `/outbox` | 200; 503 while there are rows that will not be tried again, for a monitor that tells people |
    # | `/metrics` | Prometheus' text format |
    #
    # A broker that blocks publishing, and a relay that was paused, are told of ("degraded") and are ready: waiting is all
    # there is to do. A process without relays is ready without a broker, because it only writes rows.
    #
    # @example in config/routes.rb
    #   mount AceMQ::Rails::Probe.new => "/acemq"
    class Probe
      # Seconds that a database may take to answer.
      PATIENCE = 2.0
      # Seconds for which figures are read once, at least.
      FRESH = 1.0

      JSON_TYPE = { "content-type" => "application/json", "cache-control" => "no-store" }.freeze
      TEXT_TYPE = { "content-type" => "text/plain; version=0.0.4; charset=utf-8", "cache-control" => "no-store" }.freeze

      # @param relays [Hash{String => AMQP::Patterns::OutboxRelay}, nil] of this process, by name; those of initializers,
      #   or of Puma's plugin, that were started in this process when nil
      # @param outboxes [Enumerable<Operations::Outboxes::Named>, nil] those of the relays, or the plain one, when nil
      # @param patience [Numeric] seconds
      # @param metrics [Metrics]
      def initialize(relays: nil, outboxes: nil, patience: PATIENCE, metrics: Metrics.process)
        @relays = relays
        @outboxes = outboxes
        @metrics = metrics
        @databases = Databases.new(patience, FRESH)
      end

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, Array<String>)]
      def call(env)
        case env["PATH_INFO"].to_s.chomp("/")
        when "/live" then answer(relays.transform_values { |relay| { ok: relay.running? } })
        when "/ready" then answer(readiness)
        when "/outbox" then answer(retired)
        when "/metrics" then [200, TEXT_TYPE.dup, [text]]
        else [404, JSON_TYPE.dup, [JSON.generate(paths: %w[/live /ready /outbox /metrics])]]
        end
      end

      private

      def answer(checks)
        ok = checks.values.all? { |check| check[:ok] }
        [ok ? 200 : 503, JSON_TYPE.dup, [JSON.generate(ok: ok, checks: checks)]]
      end

      def relays
        @relays || AceMQ::Rails::Relays.started.each_with_index.to_h { |relay, index| ["relay #{index + 1}", relay] }
      end

      # Also those whose relays run elsewhere: this process writes to them.
      def known
        Outboxes.new(@relays ? @relays.values : AceMQ::Rails::Relays.kept)
      end

      # @return [Hash{Operations::Outboxes::Named => Databases::Answer}] without the plain outbox where it has no table
      def ask(what, &block)
        return @databases.ask(what, @outboxes, &block) if @outboxes

        known = self.known
        answers = @databases.ask(what, known.to_a, &block)
        known.plain? ? answers.reject { |_, answer| answer.error.is_a?(AMQP::ConfigurationError) } : answers
      end

      def pings
        ask(:ping) { |outbox| outbox.store.ping }
      end

      def readiness
        databases = pings.to_h { |outbox, answer| ["outbox #{outbox.name}", { ok: answer.ok?, reason: answer.reason }.compact] }
        databases.merge(relays.to_h { |name, relay| ["relay #{name}", relay(relay)] })
      end

      def relay(relay)
        state = relay.state
        ok = relay.running? && state.name != :down && relay.connected?
        { ok: ok, degraded: %i[blocked paused].include?(state.name), state: state.name, since: state.since.utc.iso8601,
          reason: state.reason || (relay.connected? ? nil : "no connection to the broker") }.compact
      end

      def retired
        answers = ask(:retired) { |outbox| outbox.store.retired_count }
        answers.to_h do |outbox, answer|
          [outbox.name, { ok: answer.value&.zero? || false, retired: answer.value, reason: answer.reason }.compact]
        end
      end

      def text
        Page.new.add(gauges.to_prometheus).add(@metrics.to_prometheus).add(telemetry).to_s
      end

      def gauges
        answers = pings
        figures = status(answers.select { |_, answer| answer.ok? }.keys)
        Metrics::Gauges.new.tap do |gauges|
          answers.each { |outbox, answer| gauges.outbox(outbox.name, up: answer.ok?, status: figures[outbox]&.value) }
          relays.each { |name, relay| gauges.relay(name, relay) }
        end
      end

      # One that does not answer any more is missing here, and told of by the next ping.
      def status(outboxes)
        @databases.ask(:status, outboxes, former: true) { |outbox| Operations::Status.new(outbox) }
      end

      # Of consumers and direct publishing, where the application has chosen an observer that can write it.
      def telemetry
        observer = AceMQ::Rails.config.telemetry if AceMQ::Rails.config.respond_to?(:telemetry)
        observer.to_prometheus if observer.respond_to?(:to_prometheus)
      end
    end
  end
end
