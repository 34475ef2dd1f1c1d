# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # A stretch of the outbox in destination order.
      #
      # @api private
      class DestinationPage
        # The rows that were seen of one destination: those in front of its first held row, and whether one was held.
        Seen = Struct.new(:name, :ids, :walled)

        # @return [Array<Seen>]
        attr_reader :destinations
        # @return [Array(String, String), nil] where the next page starts behind; nil at the end of the table
        attr_reader :last

        # @param rows [Array<Array(String, String, String, Integer)>] id, exchange, routing key, 1 when held
        # @param last [Array(String, String), nil]
        # @param cut [Boolean] whether it ends because of its size, perhaps in the middle of a destination
        def initialize(rows, last, cut: false)
          @last = last
          @cut = cut
          # By both names exactly: under a collation that ignores case, rows of two spellings come interleaved.
          @destinations = rows.group_by { |_, exchange, key| [exchange, key] }.map do |name, found|
            open = found.take_while { |row| row[3].to_i.zero? }
            Seen.new(name, open.map(&:first), open.size < found.size)
          end
        end

        # @return [Boolean] whether nothing is to be had of the rest of its last destination
        def ends_walled?
          destinations.any? && destinations.last.walled
        end

        # @return [Boolean] whether its last destination may go on
        def ends_open?
          @cut && !destinations.last.walled
        end

        # @param rows [Array] see {#initialize}
        # @param size [Integer] what was asked for; fewer rows are the last ones
        def self.of(rows, size)
          cut = rows.size >= size
          new(rows, (rows.last[1, 2] if cut), cut: cut)
        end
      end
    end
  end
end
