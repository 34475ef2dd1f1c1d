# frozen_string_literal: true

require_relative "telemetry/guarded"
require_relative "telemetry/none"
require_relative "telemetry/registry"

module AceMQ
  module AMQP
    # What happens, as numbers. An observer is any object with `count(metric,
    # delta = 1, **labels)`, `observe(metric, value, **labels)` and `gauge(metric,
    # value, **labels)`; what it raises is swallowed, and said once per metric.
    module Telemetry
      # Messages by exchange and outcome: confirmed, unroutable, failed, refused (nothing was written).
      PUBLISH_TOTAL = "acemq.publish.total"
      # Deliveries by queue and outcome, see {Settlement}; one each.
      CONSUME_TOTAL = "acemq.consume.total"
      # Seconds from the delivery to the decision, by queue and outcome.
      CONSUME_DURATION = "acemq.consume.duration"
      # The attempt of every delivery, by queue.
      CONSUME_ATTEMPTS = "acemq.consume.attempts"
      # Handlers that run now, by queue.
      IN_FLIGHT = "acemq.consume.in.flight"
      # Deliveries held for a later attempt without occupying a worker, by queue.
      WAITING = "acemq.consume.waiting"
      # Retries by queue and outcome.
      RETRIED_TOTAL = "acemq.messages.retried.total"
      # Messages set aside by queue and outcome: dead_lettered or parked.
      DEAD_LETTERED_TOTAL = "acemq.messages.dead.lettered.total"
      # Copies that were not confirmed, by queue and the queue they were meant for. Nothing is lost: each is tried again.
      SET_ASIDE_FAILED = "acemq.messages.set.aside.failed"
      # Retries that found no queue to wait in, by queue.
      RUNG_MISSING = "acemq.retry.rung.missing"
      # Claims on idempotency keys by outcome, see {Patterns::HitRate}.
      IDEMPOTENCY_TOTAL = "acemq.idempotency.total"
    end
  end
end
