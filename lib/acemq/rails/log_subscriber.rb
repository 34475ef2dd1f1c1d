# frozen_string_literal: true

require "active_support/log_subscriber"

module AceMQ
  module Rails
    # The events of {AMQP::Notifications} in Rails' log: what people have to know as warnings and errors, what goes on
    # all the time for who debugs.
    class LogSubscriber < ::ActiveSupport::LogSubscriber
      # @param event [ActiveSupport::Notifications::Event]
      def add(event)
        return if failed?(event)

        said = event.payload
        debug { "acemq: outbox add #{said[:id]} for #{place(said)} (#{said[:bytes]} bytes, #{time(event)})" }
      end

      def claim(event)
        return if event.payload[:claimed].to_i.zero?

        debug { "acemq: #{event.payload[:claimed]} rows claimed (#{time(event)})" }
      end

      def publish(event)
        confirmed = Array(event.payload[:confirmed]).size
        debug { "acemq: #{confirmed} of #{event.payload[:records].size} messages confirmed (#{time(event)})" }
      end

      def mark(event)
        return if failed?(event)

        counts = event.payload.values_at(:marked, :failed, :held, :unsent).zip(%w[marked failed held released])
        debug { "acemq: #{counts.join(" ")} (#{time(event)})" }
      end

      def retire(event)
        said = event.payload
        error { "acemq: outbox row #{said[:id]} for #{place(said)} is retired, until acemq retry #{said[:id]}: #{said[:reason]}" }
      end

      def lease_lost(event)
        warn { "acemq: #{event.payload[:rows]} rows were somebody else's when they were settled: their lease ran out" }
      end

      def blocked(event)
        warn { "acemq: the broker has blocked publishing (#{event.payload[:reason]}); rows wait" }
      end

      def reconnect(_event)
        info { "acemq: connected to the broker again" }
      end

      def handle(event)
        said = event.payload
        debug { "acemq: #{said[:queue]} #{said[:id]} (#{said[:type]}, attempt #{said[:attempt]}) #{said[:outcome]} (#{time(event)})" }
      end

      def duplicate(event)
        info { "acemq: the work of #{event.payload[:key].inspect} was done before; its message is accepted" }
      end

      def idempotency(event)
        key = event.payload[:key].inspect
        case event.payload[:outcome]
        when :taken_over then warn { "acemq: the work of #{key} is begun again: whoever had begun with it never finished" }
        when :lost then warn { "acemq: the work of #{key} was refused: it took longer than its claim, and somebody else has it" }
        end
      end

      private

      # What happened instead is raised to whoever asked for it.
      def failed?(event)
        event.payload.key?(:exception)
      end

      def place(said)
        "#{said[:exchange]}/#{said[:routing_key]}"
      end

      def time(event)
        format("%.1f ms", event.duration)
      end
    end
  end
end
