# frozen_string_literal: true

require "active_support"
require "active_support/notifications"
require_relative "amqp/notifications"
require_relative "metrics/family"
require_relative "metrics/gauges"

module AceMQ
  # What happened in this process since it began, counted from {AMQP::Notifications} and written as Prometheus reads it.
  # Nothing is counted before somebody asks for {Metrics.process}.
  #
  # | metric | type | labels |
  # |---|---|---|
  # | `acemq_outbox_added_total` | counter | outbox |
  # | `acemq_outbox_claimed_total` | counter | outbox |
  # | `acemq_outbox_published_total` | counter | outbox, exchange |
  # | `acemq_outbox_publish_failures_total` | counter | outbox, scope: record, destination, connection |
  # | `acemq_outbox_marked_total` | counter | outbox |
  # | `acemq_outbox_retirements_total` | counter | outbox |
  # | `acemq_outbox_leases_lost_total` | counter | outbox |
  # | `acemq_outbox_commit_to_confirm_seconds` | histogram | outbox |
  # | `acemq_relay_batch_seconds` | histogram | |
  # | `acemq_relay_blocked_total`, `acemq_relay_reconnects_total` | counter | |
  # | `acemq_messages_handled_total` | counter | queue, outcome |
  # | `acemq_message_handle_seconds` | histogram | queue |
  # | `acemq_messages_duplicate_total` | counter | |
  # | `acemq_idempotency_total` | counter | outcome |
  class Metrics
    LATENCY = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800].freeze
    WORK = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30].freeze

    SCOPES = %i[record destination connection].freeze

    EVENTS = %i[add claim publish mark retire lease_lost blocked reconnect handle duplicate idempotency sweep].freeze

    @lock = Mutex.new

    # @return [Metrics] those of this process, counting from the first call on
    def self.process
      @lock.synchronize { @process ||= new.tap(&:start) }
    end

    def initialize
      @added = counter("acemq_outbox_added_total", "Records written to an outbox")
      @claimed = counter("acemq_outbox_claimed_total", "Records leased by a relay")
      @published = counter("acemq_outbox_published_total", "Records confirmed by the broker")
      @failures = counter("acemq_outbox_publish_failures_total", "Failures of rounds to publish, by what was at fault")
      @marked = counter("acemq_outbox_marked_total", "Records marked as published")
      @retired = counter("acemq_outbox_retirements_total", "Records that will not be tried again")
      @lost = counter("acemq_outbox_leases_lost_total", "Records whose lease somebody else had when they were settled")
      @latency = histogram("acemq_outbox_commit_to_confirm_seconds", "From the writing of a record to its confirm", LATENCY)
      @batch = histogram("acemq_relay_batch_seconds", "Rounds of a relay that claimed anything", WORK)
      @blocked = counter("acemq_relay_blocked_total", "Times that the broker blocked publishing")
      @reconnects = counter("acemq_relay_reconnects_total", "Connections to the broker after the first")
      @handled = counter("acemq_messages_handled_total", "Messages handled, by what was decided")
      @handling = histogram("acemq_message_handle_seconds", "From the delivery to the decision", WORK)
      @duplicates = counter("acemq_messages_duplicate_total", "Messages whose work had been done before")
      @claims = counter("acemq_idempotency_total", "Claims on idempotency keys, by what came of them")
    end

    # @return [self]
    def start
      @subscriptions ||= EVENTS.map do |event|
        name = AMQP::Notifications::NAMES.fetch(event)
        ::ActiveSupport::Notifications.monotonic_subscribe(name) do |_, began, ended, _, payload|
          send(event, payload, ended - began)
        end
      end
      self
    end

    # @return [nil]
    def stop
      Array(@subscriptions).each { |subscription| ::ActiveSupport::Notifications.unsubscribe(subscription) }
      @subscriptions = nil
    end

    # @return [String] in Prometheus' text format
    def to_prometheus
      families.join
    end

    private

    def families
      @families ||= []
    end

    def counter(name, help)
      Family.new(name, help, :counter).tap { |family| families << family }
    end

    def histogram(name, help, buckets)
      Histogram.new(name, help, buckets).tap { |family| families << family }
    end

    def add(payload, _seconds)
      @added.add(1, outbox: payload[:outbox]) unless payload[:exception]
    end

    def claim(payload, _seconds)
      begin_counting(payload[:outbox])
      @claimed.add(payload[:claimed].to_i, outbox: payload[:outbox])
    end

    # From 0 on: of a series that is not there yet nobody sees the first increase.
    def begin_counting(outbox)
      [@marked, @retired, @lost].each { |family| family.add(0, outbox: outbox) }
      SCOPES.each { |scope| @failures.add(0, outbox: outbox, scope: scope) }
    end

    def publish(payload, _seconds)
      outbox = payload[:outbox]
      now = Time.now
      Array(payload[:confirmed]).each do |record|
        @published.add(1, outbox: outbox, exchange: record.exchange.to_s)
        @latency.observe([now - record.created_at, 0].max, outbox: outbox) if record.created_at.is_a?(Time)
      end
      Array(payload[:failures]).each { |error| @failures.add(1, outbox: outbox, scope: scope(error)) }
    end

    def scope(error)
      error.respond_to?(:scope) ? error.scope : :record
    end

    def mark(payload, _seconds)
      @marked.add(payload[:marked], outbox: payload[:outbox]) unless payload[:exception]
    end

    def retire(payload, _seconds)
      @retired.add(1, outbox: payload[:outbox])
    end

    def lease_lost(payload, _seconds)
      @lost.add(payload[:rows], outbox: payload[:outbox])
    end

    def blocked(_payload, _seconds)
      @blocked.add(1)
    end

    def reconnect(_payload, _seconds)
      @reconnects.add(1)
    end

    def handle(payload, seconds)
      @handled.add(1, queue: payload[:queue], outcome: payload[:outcome] || :failed)
      @handling.observe(seconds, queue: payload[:queue])
    end

    def duplicate(_payload, _seconds)
      @duplicates.add(1)
    end

    def idempotency(payload, _seconds)
      @claims.add(1, outcome: payload[:outcome])
    end

    def sweep(payload, seconds)
      @batch.observe(seconds) if payload[:claimed].to_i.positive?
    end
  end
end
