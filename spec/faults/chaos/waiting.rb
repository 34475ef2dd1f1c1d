# frozen_string_literal: true

require "set"

module AceMQ
  module Chaos
    # Watches that nothing claimable is left waiting. A row is claimable when neither it nor an earlier one that it has to
    # wait for is held, that is, leased or backing off.
    class Waiting
      # @return [Array<String>] ids that waited for too long
      attr_reader :stuck

      # @param limit [Float] seconds that a claimable row may wait
      # @param ordering [Symbol] what a row waits for: those of its lane, of the table (`:strict`), or none
      def initialize(limit, ordering: :destination)
        @limit = limit
        @ordering = ordering
        @since = {}
        @stuck = []
      end

      # @param rows [Array<Array(String, Object, Boolean)>] id, lane and whether it is held, of what is not published
      #   yet, in order
      # @param now [Float] seconds
      def look(rows, now)
        @since = claimable(rows).to_h { |id| [id, @since.fetch(id, now)] }
        @stuck |= @since.select { |_, since| now - since > @limit }.keys
      end

      # The broker, the database or the last relay was away: nobody could have claimed, so everybody starts anew.
      def excuse
        @since = {}
      end

      private

      def claimable(rows)
        shut = Set.new
        rows.filter_map do |id, lane, held|
          line = { destination: lane, strict: :table, none: id }.fetch(@ordering)
          shut << line if held
          id unless shut.include?(line)
        end
      end
    end
  end
end
