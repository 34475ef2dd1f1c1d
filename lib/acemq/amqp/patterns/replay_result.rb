# frozen_string_literal: true

require_relative "../errors"

module AceMQ
  module AMQP
    module Patterns
      # What a replay has done.
      class ReplayResult
        # @return [String] the queue that messages were taken from
        attr_reader :from
        # @return [String] where they went
        attr_reader :exchange, :routing_key
        # @return [Integer] messages in the queue at the start
        attr_accessor :total
        # @return [Integer] moved; of a dry run, those that would be
        attr_reader :replayed
        # @return [Integer] left where they were because the filter said so
        attr_reader :skipped
        # @return [Integer] left where they were because no copy of them can be carried
        attr_reader :refused
        # @return [PublishError, nil] why the first of those cannot
        attr_reader :refusal
        # @return [Symbol, nil] `:finished` (nothing was left), `:limit`, `:deadline` or `:failed`; nil while it runs
        attr_accessor :ended

        # @api private
        def initialize(from:, exchange:, routing_key:, dry_run:)
          @from = from
          @exchange = exchange
          @routing_key = routing_key
          @dry_run = dry_run ? true : false
          @total = @replayed = @skipped = @refused = 0
        end

        # @return [Boolean]
        def dry_run?
          @dry_run
        end

        # @return [Integer] messages looked at
        def examined
          replayed + skipped + refused
        end

        # @api private
        def replay
          @replayed += 1
        end

        # @api private
        def skip
          @skipped += 1
        end

        # @api private
        def refuse(error)
          @refused += 1
          @refusal = error if refused == 1
        end

        # @return [Hash{Symbol => Object}] for a log line
        def to_h
          { from: from, exchange: exchange, routing_key: routing_key, total: total, replayed: replayed, skipped: skipped,
            refused: refused, refusal: refusal&.message, ended: ended, dry_run: dry_run? }
        end

        # @return [String]
        def to_s
          moved = dry_run? ? "would be moved" : "moved"
          left = "; #{refused} cannot be carried: #{refusal.message}" if refused.positive?
          "#{replayed} of #{total} messages of #{from} #{moved} to #{destination}, #{skipped} skipped (#{ended})#{left}"
        end

        private

        def destination
          exchange.empty? ? routing_key : "#{exchange}/#{routing_key}"
        end
      end

      # A replay that did not get to its end. What it had not moved is where it was.
      class ReplayFailed < TransportError
        # @return [ReplayResult] up to there
        attr_reader :result

        # @param cause [TransportError]
        # @param result [ReplayResult]
        def initialize(cause, result)
          @result = result
          @scope = cause.scope
          @unknown = cause.unknown?
          double = ", and a copy of the last one perhaps in its queue" if @unknown
          super("the replay of #{result.from} ended after #{result.replayed} of #{result.total} messages; the rest is still " \
                "there#{double}: #{cause.message}")
        end

        # @return [:destination, :connection]
        attr_reader :scope

        # @return [Boolean] whether the copy of the last one may be in a queue all the same, so that there are two of it
        def unknown?
          @unknown
        end
      end
    end
  end
end
