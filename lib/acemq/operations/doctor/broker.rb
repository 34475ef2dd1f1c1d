# frozen_string_literal: true

require "securerandom"
require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # Whether the broker can be reached, and whether it has what the rows are addressed to. AMQP has no way to ask
      # which queues are bound to an exchange: that a routing key reaches none shows in the rows that wait for it.
      class Broker
        REACH = "see whether it runs, and what config.acemq.url says of host, port, virtual host, user and password"

        # @param connection [AMQP::Connection]
        # @param destinations [Enumerable<Destinations::Destination>]
        def initialize(connection, destinations)
          @connection = connection
          @destinations = destinations
        end

        # @return [Array<Finding>]
        def examine
          @connection.connect
          [reached, *exchanges, *queues]
        rescue AMQP::TransportError, AMQP::ConfigurationError => e
          [Finding.error("broker", e.message, REACH)]
        ensure
          drop_probe
        end

        private

        def reached
          reason = @connection.blocked_reason
          return Finding.ok("broker", "answers") unless reason

          Finding.error("broker", "has blocked publishing: #{reason}", "free memory or disk on the broker; nothing is lost meanwhile")
        end

        def exchanges
          @destinations.reject { |one| one.exchange.empty? }.group_by(&:exchange).map do |exchange, found|
            exchange(exchange, found)
          end
        end

        # Binding a queue of our own to it, for a key that nobody uses, is the one question that every exchange answers.
        def exchange(name, found)
          @connection.bind(queue: probe, exchange: name, routing_key: "acemq.doctor.#{SecureRandom.hex(8)}")
          Finding.ok("exchange #{name}", "is there; #{found.size} routing keys in the outbox")
        rescue AMQP::TransportError => e
          missing_or_forbidden("exchange #{name}", found, e)
        end

        # The reply's own words are all that an operator gets; the broker begins them by its code's name.
        def missing_or_forbidden(subject, found, error)
          case error.message
          when /NOT_FOUND/ then absent(subject, found.sum(&:pending))
          when /ACCESS_REFUSED/
            Finding.warning(subject, "may be there: this user may not bind a queue to it, so it could not be looked at",
                            "nothing, if publishing is permitted; last_error of the rows says so if it is not")
          else Finding.warning(subject, "could not be looked at: #{error.message}", "try again")
          end
        end

        def queues
          @destinations.select { |one| one.exchange.empty? }.map do |one|
            subject = "queue #{one.routing_key}"
            next Finding.ok(subject, "is there") if @connection.queue_exists?(one.routing_key)

            absent(subject, one.pending)
          rescue AMQP::TransportError => e
            Finding.warning(subject, "could not be looked at: #{e.message}", "try again")
          end
        end

        # What went out long ago may have had its exchange then.
        def absent(subject, waiting)
          if waiting.zero?
            return Finding.warning(subject, "does not exist; rows were addressed to it, and none waits for it now",
                                   "nothing, if it is gone on purpose: acemq purge forgets it with its rows")
          end

          Finding.error(subject, "does not exist, and rows are addressed to it",
                        "declare it (config.acemq.topology and acemq:topology, or by hand); the rows go out by themselves then")
        end

        # Gone within a minute, whatever becomes of us.
        def probe
          @probe ||= @connection.declare_queue("acemq.doctor.#{SecureRandom.hex(8)}", queue_type: :classic, durable: false,
                                                                                      arguments: { "x-expires" => 60_000 })
        end

        def drop_probe
          @connection.delete_queue(@probe) if @probe
        rescue AMQP::TransportError
          nil
        end
      end
    end
  end
end
