# frozen_string_literal: true

require_relative "../duration"

module AceMQ
  module CLI
    # What the commands show to people.
    module Text
      # An outbox at one moment, in a few lines.
      class Status
        # @param status [Operations::Status]
        def initialize(status)
          @status = status
        end

        # @return [String]
        def to_s
          ["outbox #{@status.name}", *figures, *held, *leases].join("\n")
        end

        private

        def figures
          oldest = @status.oldest ? "the oldest written #{Duration.show(@status.oldest)} ago" : ""
          [row("pending", @status.pending, oldest), row("published", format("%.1f/s", @status.rate), "over the last minute"),
           row("retired", @status.retired, @status.retired.positive? ? "acemq retry brings them back; last_error says why" : "")]
        end

        def held
          [row("held", @status.held.size, "destinations wait after a failure")] +
            @status.held.map { |(exchange, key), rows| "    #{destination(exchange, key)}  #{rows} in backoff" }
        end

        def leases
          [row("leases", @status.leases.size, "relays at work now")] + @status.leases.map { |lease| "    #{lease(lease)}" }
        end

        def row(name, value, remark)
          format("  %-10s %10s   %s", name, value, remark).rstrip
        end

        def destination(exchange, key)
          "#{exchange.empty? ? "(default exchange)" : exchange} #{key}"
        end

        def lease(lease)
          since = lease.since ? ", since #{lease.since.iso8601} (#{Duration.show([@status.at - lease.since, 0].max)})" : ""
          "#{lease.holder}: #{lease.rows} rows#{since}, #{Duration.show(lease.seconds_left)} left"
        end
      end
    end
  end
end
