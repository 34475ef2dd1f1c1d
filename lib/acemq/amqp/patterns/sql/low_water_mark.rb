# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # For each destination that is known, a time before which it has nothing to be claimed; and for all others one time.
      # See {LowWater}.
      #
      # @api private
      class LowWaterMark
        # A stretch of the index, in its order, and where it may be looked at.
        #
        # @!attribute kind [Symbol] of {KINDS}
        # @!attribute exchange [String, nil]
        # @!attribute low [String, nil]
        # @!attribute high [String, nil]
        # @!attribute since [Time]
        # @!attribute text [String, nil] as SQL, once somebody has written it: claims are many, and stretches too
        Stretch = Struct.new(:kind, :exchange, :low, :high, :since, :text)

        # What belongs to a stretch. Written without comparisons of rows: a scan between two of those begins at the front
        # of the exchange.
        KINDS = {
          destination: "exchange_name = s.exchange AND routing_key = s.low",
          keys_between: "exchange_name = s.exchange AND routing_key > s.low AND routing_key < s.high",
          keys_below: "exchange_name = s.exchange AND routing_key < s.high",
          keys_above: "exchange_name = s.exchange AND routing_key > s.low",
          exchanges_between: "exchange_name > s.low AND exchange_name < s.high",
          exchanges_below: "exchange_name < s.high",
          exchanges_above: "exchange_name > s.low",
          anywhere: "TRUE"
        }.freeze

        # @return [Time] before which nothing can be claimed at all
        attr_reader :oldest
        # @return [Array] see {OutboxSQL#view}
        attr_reader :view

        # @param heads [Array<Array(String, String, Time)>] see {LowWater::Reading}
        # @param others [Time] before which there are only those heads and what came after them
        # @param view [Array] of those who can use it
        def initialize(heads, others, view = nil)
          @view = view
          # Older servers reckon times in floating point.
          @others = others.floor(3)
          @known = heads.to_h { |exchange, key, time| [[exchange, key], [time&.floor(3), @others].compact.min] }
          @oldest = [@others, *@known.values].min
          @outdated = false
        end

        # @param after [Array(String, String), nil] a destination
        # @return [Array<Stretch>, nil] the whole index behind that destination; nil where its place is not known
        def stretches(after)
          return unless after.nil? || @known.key?(after)
          return all unless after

          all.drop(1 + all.index { |one| one.kind == :destination && one.exchange == after[0] && one.low == after[1] })
        end

        # @param names [Array<Array(String, String)>] destinations that have something to be claimed
        def saw(names)
          @outdated = true unless names.all? { |name| @known.key?(name) }
        end

        # @return [Boolean] whether there are others by now, of which only the first in its stretch is found
        def outdated?
          @outdated
        end

        private

        def all
          @all ||= [nil, *@known.keys, nil].each_cons(2).flat_map { |left, right| gap(left, right) + destination(right) }
        end

        def destination(name)
          name ? [stretch(:destination, *name, since: @known[name])] : []
        end

        def gap(left, right)
          return [stretch(:keys_between, left[0], left[1], right[1])] if left && right && left[0] == right[0]

          [(stretch(:keys_above, *left) if left), exchanges(left&.first, right&.first),
           (stretch(:keys_below, right[0], nil, right[1]) if right)].compact
        end

        def exchanges(left, right)
          return stretch(:exchanges_between, nil, left, right) if left && right
          return stretch(:anywhere, nil) unless left || right

          left ? stretch(:exchanges_above, nil, left) : stretch(:exchanges_below, nil, nil, right)
        end

        def stretch(kind, exchange, low = nil, high = nil, since: @others)
          Stretch.new(kind, exchange, low, high, since)
        end
      end
    end
  end
end
