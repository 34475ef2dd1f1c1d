# frozen_string_literal: true

require "timeout"
require_relative "clock"
require_relative "errors"

module AceMQ
  module AMQP
    # Whether a connection can do its work now. For readiness, not for liveness: an
    # outage of the broker would have every process restarted at once.
    module Health
      UP = :up
      DEGRADED = :degraded
      DOWN = :down
      # From well to ill.
      STATUSES = [UP, DEGRADED, DOWN].freeze

      # What alerts look for; the broker's reason follows after ": ".
      BLOCKED = "the broker has blocked this connection; publishing is paused"

      # Seconds that a probe may take.
      TIMEOUT = 5

      # @!attribute status [Symbol] `:up`, `:degraded` or `:down`
      # @!attribute detail [String] "" when there is nothing to say
      # @!attribute checked_at [Time]
      # @!attribute parts [Hash{Symbol => Object}] consumers, consumers_running, queues, round_trip_ms, blocked,
      #   blocked_reason
      Report = Struct.new(:status, :detail, :checked_at, :parts, keyword_init: true) do
        # @return [Boolean]
        def up?
          status == UP
        end

        # @return [Boolean]
        def down?
          status == DOWN
        end

        # @return [Boolean]
        def degraded?
          status == DEGRADED
        end

        # @return [Hash] for JSON
        def to_h
          told = detail.empty? ? {} : { detail: detail }
          { status: status, checked: checked_at.utc.strftime("%Y-%m-%dT%H:%M:%SZ"), **told, parts: parts }
        end
      end

      # A connection under a name, for {Health.aggregate}.
      Check = Struct.new(:name, :connection) do
        # @return [Report]
        def report
          Health.of(connection.respond_to?(:call) ? connection.call : connection)
        end
      end

      class << self
        # @param connection [Connection]
        # @param timeout [Numeric] seconds that the broker has for its answer
        # @return [Report]
        def of(connection, timeout: TIMEOUT)
          Examination.new(connection, timeout).report
        end

        # Several at once; as ill as the worst of them.
        #
        # @param checks [Array<Check>] each with a name of its own
        # @return [Report]
        # @raise [ArgumentError] for two of one name, of which one would not be seen
        def aggregate(*checks)
          threads = distinct(checks.flatten).to_h { |check| [check.name, Thread.new { examined(check) }] }
          reports = threads.transform_values(&:value)
          worst = reports.values.map(&:status).max_by { |status| STATUSES.index(status) } || UP
          told = reports.filter_map { |name, report| "#{name}: #{summary(report)}" unless summary(report) == UP.name }
          Report.new(status: worst, detail: told.join("; "), checked_at: Time.now, parts: reports.transform_values(&:to_h))
        end

        private

        def distinct(checks)
          twice = checks.map { |check| check.name.to_s }.tally.select { |_, count| count > 1 }.keys
          twice.empty? ? checks : raise(ArgumentError, "several checks are called #{twice.join(", ")}: give each a name of its own")
        end

        def summary(report)
          report.detail.empty? ? report.status.name : "#{report.status} (#{report.detail})"
        end

        def examined(check)
          check.report
        rescue StandardError => e
          Report.new(status: DOWN, detail: "#{e.class}: #{e.message}", checked_at: Time.now, parts: {})
        end
      end

      # One look at one connection.
      #
      # @api private
      class Examination
        def initialize(connection, timeout)
          @connection = connection
          @timeout = timeout
        end

        # @return [Report]
        def report
          consumers = @connection.consumers
          @parts = { consumers: consumers.size, consumers_running: consumers.count(&:running?),
                     queues: consumers.map(&:queue).uniq }
          return finding(DOWN, "the connection is closed") if closed?
          return blocked(consumers) if @connection.blocked?

          probe(consumers)
          well_or_degraded(consumers)
        rescue StandardError => e
          # An alarm that came meanwhile explains a probe without an answer.
          @connection.blocked? ? blocked(consumers) : finding(DOWN, "#{e.class}: #{e.message}")
        end

        private

        # A transport that dials by itself is not closed for having no link at the moment.
        def closed?
          !@connection.open? && !@connection.transport.respond_to?(:connect)
        end

        def blocked(consumers)
          reason = @connection.blocked_reason
          @parts.merge!(blocked: true, blocked_reason: reason)
          well_or_degraded(consumers, "#{BLOCKED}: #{reason}")
        end

        def well_or_degraded(consumers, *details)
          stopped = consumers.reject(&:running?)
          details.concat(stopped.map { |consumer| "the consumer of #{consumer.queue} is not running#{trouble(consumer)}" })
          finding(stopped.empty? ? UP : DEGRADED, details.join("; "))
        end

        def trouble(consumer)
          reason = consumer.trouble if consumer.respond_to?(:trouble)
          reason ? ": #{reason}" : ""
        end

        # Asking for a queue that is there costs the broker less than a new one each time.
        def probe(consumers)
          started = Clock.now
          Timeout.timeout(@timeout) do
            consumers.empty? ? @connection.probe_queue.round_trip : @connection.queue_exists?(consumers.first.queue)
          end
          @parts[:round_trip_ms] = ((Clock.now - started) * 1000).round(2)
        rescue ConfigurationError
          # A transport of the application's own that cannot be asked.
          nil
        end

        def finding(status, detail)
          Report.new(status: status, detail: detail, checked_at: Time.now, parts: @parts)
        end
      end
      private_constant :Examination
    end
  end
end
