# frozen_string_literal: true

require_relative "destination_page"

module AceMQ
  module AMQP
    module Patterns
      # Finds candidates destination by destination, jumping over held ones, so that a long backlog of one
      # destination costs a page and not its length.
      #
      # A walk that filled its batch is continued behind the destination where it ended: small destinations are
      # not starved by a hot one.
      #
      # @api private
      class DestinationWalk
        # Rows asked for behind a held destination: likely to be held ones too, of which one each is enough.
        PROBE = 8

        def initialize
          @start = nil
          @lock = Mutex.new
        end

        # @param limit [Integer] rows
        # @yieldparam after [Array(String, String), nil] a destination
        # @yieldparam size [Integer] rows at most
        # @yieldreturn [DestinationPage]
        # @return [Array<Array<String>>] ids, one list per destination, each in order and without a gap
        def candidates(limit, &page)
          round = Round.new(limit, @lock.synchronize { @start }, page)
          lists = round.run
          @lock.synchronize { @start = round.full? ? round.position : nil }
          lists
        end

        # Once around the table, from where the last walk ended.
        class Round
          # @return [Array(String, String), nil] the last destination that was dealt with
          attr_reader :position

          def initialize(limit, start, page)
            @limit = limit
            @room = limit
            @start = start
            @position = start
            @behind = start # the last page's end: a page that ends there again would be asked for for ever
            @page = page
            @glimpsed = nil
            @taken = {}
          end

          # @return [Array<Array<String>>]
          def run
            from_here_to_the_end
            if @start && !full?
              @position = @behind = nil
              from_here_to_the_end
            end
            @taken.values.reject(&:empty?)
          end

          # @return [Boolean]
          def full?
            @room.zero?
          end

          private

          def from_here_to_the_end
            size = @limit
            until full?
              page = @page.call(@position, size)
              take_glimpsed(page)
              break if around?(page)
              next size = step_back(page) if cut_short?(page, size)

              take(page.destinations)
              break if page.last.nil? || page.last == @behind

              @behind = @position = page.last
              size = page.ends_walled? ? [PROBE, @limit].min : @limit
            end
          end

          # Whether the page ended within a free destination of which more is wanted and may be had: a page that
          # begins with it has enough.
          def cut_short?(page, size)
            return false unless page.ends_open? && (page.destinations.size > 1 || size < @limit)

            page.destinations.sum { |seen| @taken.key?(seen.name) ? 0 : seen.ids.size } < @room
          end

          def step_back(page)
            *whole, @glimpsed = page.destinations
            take(whole)
            @position = whole.last.name if whole.any?
            @limit
          end

          # Under a collation that takes two names for one, the page behind the one does not begin with the other:
          # then what was seen of it has to do.
          def take_glimpsed(page)
            take([@glimpsed]) if @glimpsed && page.destinations.first&.name != @glimpsed.name
            @glimpsed = nil
          end

          # Whether the walk is back where it started.
          def around?(page)
            page.destinations.any? && page.destinations.all? { |seen| @taken.key?(seen.name) }
          end

          def take(destinations)
            destinations.each do |seen|
              next if full? || @taken.key?(seen.name)

              @taken[seen.name] = seen.ids.first(@room)
              @room -= @taken[seen.name].size
              @position = seen.name
            end
          end
        end
        private_constant :Round
      end
    end
  end
end
