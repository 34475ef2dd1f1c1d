# frozen_string_literal: true

require "json"
require "time"
require_relative "../metrics"
require_relative "../operations"
require_relative "probe/question"

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
        @patience = patience
        @metrics = metrics
        @questions = {}
        @lock = Mutex.new
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

      def outboxes
        return @outboxes if @outboxes

        stores = relays.values.map(&:store).select { |store| store.respond_to?(:ping) }.uniq(&:table)
        return @plain ||= Operations::Outboxes.new.to_a if stores.empty?

        stores.map { |store| Operations::Outboxes::Named.new(store.table, store) }
      end

      def readiness
        databases = outboxes.to_h { |outbox| ["outbox #{outbox.name}", database(outbox)] }
        databases.merge(relays.to_h { |name, relay| ["relay #{name}", relay(relay)] })
      end

      def database(outbox)
        question(:ping, outbox).answer { outbox.store.ping }
        { ok: true }
      rescue StandardError => e
        { ok: false, reason: e.message.lines.first.to_s.strip }
      end

      def relay(relay)
        state = relay.state
        ok = relay.running? && state.name != :down && relay.connected?
        { ok: ok, degraded: %i[blocked paused].include?(state.name), state: state.name, since: state.since.utc.iso8601,
          reason: state.reason || (relay.connected? ? nil : "no connection to the broker") }.compact
      end

      def retired
        outboxes.to_h do |outbox|
          count = question(:retired, outbox).answer { outbox.store.retired_count }
          [outbox.name, { ok: count.zero?, retired: count }]
        rescue StandardError => e
          [outbox.name, { ok: false, reason: e.message.lines.first.to_s.strip }]
        end
      end

      def text
        gauges = Metrics::Gauges.new
        outboxes.each { |outbox| gauges.outbox(outbox.name, up: database(outbox)[:ok], status: status(outbox)) }
        relays.each { |name, relay| gauges.relay(name, relay) }
        "#{gauges.to_prometheus}#{@metrics.to_prometheus}#{telemetry}"
      end

      def status(outbox)
        question(:status, outbox).latest { Operations::Status.new(outbox) }
      rescue StandardError
        nil # which the database's own answer explains
      end

      # Of consumers and direct publishing, where the application has chosen an observer that can write it.
      def telemetry
        observer = AceMQ::Rails.config.telemetry if AceMQ::Rails.config.respond_to?(:telemetry)
        observer.to_prometheus if observer.respond_to?(:to_prometheus)
      end

      def question(what, outbox)
        @lock.synchronize { @questions[[what, outbox.name]] ||= Question.new(@patience, FRESH) }
      end
    end
  end
end
