# frozen_string_literal: true

require_relative "../operations"

module AceMQ
  module Operations
    # Publishes a backlog and stops: when nothing is left, when time is up, or when nothing has gone out for a while,
    # because what is left waits for a queue, a broker, or another relay's lease.
    class Drain
      # Seconds without any progress: longer than the longest pause after a failure.
      PATIENCE = 35
      # Seconds between two looks when nothing could be published.
      LOOK = 0.5
      # Seconds between two counts of what is left, while it goes on: of a long backlog a count takes longer than a batch.
      RECOUNT = 5

      # How far it has come.
      #
      # @!attribute published [Integer] rows
      # @!attribute left      [Integer] rows
      # @!attribute seconds   [Float] since the start
      # @!attribute error     [Exception, nil] what stands in the way at present
      Progress = Struct.new(:published, :left, :seconds, :error, keyword_init: true) do
        # @return [Float] rows a second
        def rate
          seconds.positive? ? published / seconds : 0.0
        end

        # @return [Float] 0 to 100
        def percent
          total = published + left
          total.zero? ? 100.0 : published * 100.0 / total
        end

        # @return [Float, nil] seconds; nil when nothing moves
        def seconds_left
          left / rate if rate.positive?
        end

        # @return [Boolean]
        def done?
          left.zero?
        end

        # @return [Hash] for JSON
        def to_h
          { published: published, left: left, percent: percent.round(1), per_second: rate.round(1),
            seconds_left: seconds_left&.round(1), seconds: seconds.round(1), error: error&.message }
        end
      end

      # @param relay [AMQP::Patterns::OutboxRelay] not started
      # @param timeout [Numeric, nil] seconds in all; nil for no limit
      # @param patience [Numeric] seconds without progress
      def initialize(relay, timeout: nil, patience: PATIENCE)
        @relay = relay
        @store = relay.store
        @timeout = timeout
        @patience = patience
        @published = 0
        @left = 0
      end

      # @yieldparam progress [Progress] after each batch, and twice a second while nothing moves
      # @return [Progress] the last one
      # @raise [StandardError] what the database raised
      def run
        @began = @moved = AMQP::Clock.now
        recount
        loop do
          moved = sweep
          now = progress
          yield now if block_given?
          return now if now.done? || over?

          sleep LOOK unless moved
        end
      end

      private

      # Honours backoff: hammering a destination that takes nothing helps nobody.
      def sweep
        published = count { @relay.sweep(ignore_backoff: false) }
        @moved = AMQP::Clock.now if published.positive?
        published.positive?
      end

      # What a sweep that raises has published is in the table, not in its answer.
      def count
        published = yield
        @error = nil if published.positive?
        @published += published
        @left -= published
        recount if published.zero? || @left < 1 || AMQP::Clock.now - @counted > RECOUNT
        published
      rescue AMQP::TransportError => e
        @error = e
        before = @left
        gone = [before - recount, 0].max
        @published += gone
        gone
      end

      # @return [Integer]
      def recount
        @counted = AMQP::Clock.now
        @left = @store.pending_count
      end

      def progress
        Progress.new(published: @published, left: @left, seconds: AMQP::Clock.now - @began, error: @error)
      end

      def over?
        now = AMQP::Clock.now
        now - @moved > @patience || (@timeout && now - @began > @timeout)
      end
    end
  end
end
