# frozen_string_literal: true

require_relative "../operations"

module AceMQ
  module Operations
    # One turn of a relay that is called again before long: everything that is there and may go, on this thread.
    class Turn
      # @param relay [AMQP::Patterns::OutboxRelay] not started
      # @param seconds [Numeric] after which no further batch is begun
      def initialize(relay, seconds)
        @relay = relay
        @seconds = seconds
        # In a row. A store that cannot claim knows no backoff: what has failed comes again at once, and would have no
        # attempt left at the end of the turn.
        @failures = 0
        @patience = relay.store.respond_to?(:claim) ? 2 : 1
      end

      # @return [Integer] rows published
      # @raise [StandardError] the first failure, once everything else is done
      def run
        deadline = AMQP::Clock.now + @seconds
        published = 0
        until over?(deadline)
          found = sweep
          published += found.to_i
          break if found&.zero?
        end
        raise @failure if @failure

        published
      end

      private

      # A destination that takes nothing is in backoff after this, and does not come again at once.
      #
      # @return [Integer, nil] nil when it failed
      def sweep
        @relay.sweep(ignore_backoff: false).tap { @failures = 0 }
      rescue AMQP::PublishError => e
        @failure ||= e
        @failures += 1
        @gone = e.scope == :connection
        nil
      end

      # Without a broker the next run is early enough.
      def over?(deadline)
        @gone || @failures >= @patience || AMQP::Clock.now > deadline
      end
    end
  end
end
