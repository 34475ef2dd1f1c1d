# frozen_string_literal: true

require_relative "../telemetry"

module AceMQ
  module AMQP
    module Patterns
      # How often handlers were asked to do what is new, done, or being done; per process.
      #
      # | outcome | meaning |
      # |---|---|
      # | `first` | the key was new: the handler ran |
      # | `duplicate` | the work is done: accepted without running. A rate that jumps is a redelivery storm |
      # | `in_progress` | somebody is at it: the message comes back later |
      # | `taken_over` | the handler ran in place of one that never finished: a consumer died, or overran its claim |
      # | `lost` | a handler outlived its claim and was refused; its transaction, if it confirmed in it, was rolled back |
      #
      # It is an observer, as a connection's telemetry is.
      #
      # @example
      #   store.hit_rate.to_h # => {first: 90, duplicate: 9, in_progress: 1, taken_over: 0, lost: 0}
      class HitRate
        OUTCOMES = %i[first duplicate in_progress taken_over lost].freeze

        # What observers are told, with the label `outcome`.
        METRIC = Telemetry::IDEMPOTENCY_TOTAL

        def initialize
          @counts = OUTCOMES.to_h { |outcome| [outcome, 0] }
          @lock = Mutex.new
        end

        # @param metric [String] others than {METRIC} are ignored
        # @param delta [Integer]
        # @param outcome [Symbol, String] one of {OUTCOMES}
        # @return [nil]
        def count(metric, delta = 1, outcome: nil, **)
          @lock.synchronize { @counts[outcome.to_sym] += delta } if metric == METRIC
          nil
        end

        # @param outcome [Symbol] one of {OUTCOMES}
        # @return [Integer]
        # @raise [KeyError] for any other
        def [](outcome)
          @lock.synchronize { @counts.fetch(outcome) }
        end

        # @return [Hash{Symbol => Integer}]
        def to_h
          @lock.synchronize { @counts.dup }
        end

        # @return [String]
        def inspect
          "#<#{self.class.name} #{to_h.map { |outcome, count| "#{outcome}=#{count}" }.join(" ")}>"
        end
      end
    end
  end
end
