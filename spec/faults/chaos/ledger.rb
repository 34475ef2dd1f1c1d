# frozen_string_literal: true

module AceMQ
  module Chaos
    # What one episode is judged by: every message that came out of a queue, in order, against what the tables say.
    #
    # The order matters. A mark that is read after the queues were drained may belong to a message that came later,
    # so marks are read first, the queues are drained into the ledger until they are empty, and only then does every
    # one of those marks have to be in it.
    class Ledger
      # A row of the outbox at the end.
      #
      # @!attribute lane [Array(String, String)] exchange and routing key
      # @!attribute attempts [Integer]
      # @!attribute published [Boolean]
      Row = Struct.new(:id, :lane, :attempts, :published, keyword_init: true)

      # What a transaction wrote beside the outbox, in its lane: number `n`.
      Work = Struct.new(:lane, :n)

      # @param lanes [Hash{Array(String, String) => Symbol}] what is to be expected of a lane: `:good` delivers always,
      #   `:late` cannot be delivered at first, so its head is charged, `:full` nacks now and then
      # @param max_attempts [Integer]
      # @param ordering [Symbol] of the relays; with `:none` nothing waits behind a row that cannot be delivered, so
      #   each of its lane is charged, and none has a place to keep
      def initialize(lanes:, max_attempts:, ordering: :destination)
        @lanes = lanes
        @max_attempts = max_attempts
        @ordering = ordering
        @arrived = []
        @absent = []
      end

      # @return [Array<String>] ids as they came out of the queues
      attr_reader :arrived

      # @param ids [Array<String>] taken out of one queue, in order
      def take(ids)
        @arrived.concat(ids)
      end

      # @param ids [Array<String>] that were marked published before the queues were drained for the last time
      def check_marked(ids)
        @absent |= ids - @arrived
      end

      # @param work [Hash{String => Work}] of every transaction that committed
      # @param acknowledged [Array<String>] ids of which a writer was told that they are committed
      # @param rows [Array<Row>]
      # @param poison [Array<String>] ids that can never be sent
      # @param repeats_allowed [Integer]
      # @return [Judgement]
      def judge(work:, acknowledged:, rows:, poison:, repeats_allowed:)
        by_id = rows.to_h { |row| [row.id, row] }
        Judgement.new(
          committed: work.size, published: rows.count(&:published), absent: @absent,
          lost: (acknowledged - work.keys) | (work.keys - by_id.keys), phantoms: @arrived.uniq - work.keys,
          undelivered: work.keys - @arrived - @absent, unmarked: unmarked(work, by_id),
          repeated: @arrived.size - @arrived.uniq.size, repeats_allowed: repeats_allowed,
          charged: wrongly_charged(rows, work, poison) | not_retired(by_id, poison), disordered: disordered(work)
        )
      end

      # The lanes in which something is wrong, as their numbers came out of the queues.
      #
      # @param work [Hash{String => Work}]
      # @param ids [Array<String>]
      # @return [Hash{Array(String, String) => Array<Integer>}]
      def lanes_of(ids, work)
        concerned = work.values_at(*ids).compact.map(&:lane).uniq
        arrived_work = work.values_at(*@arrived).compact
        concerned.to_h { |lane| [lane, arrived_work.select { |written| written.lane == lane }.map(&:n)] }
      end

      private

      def unmarked(work, by_id)
        (work.keys & @arrived).reject { |id| by_id[id]&.published }
      end

      def wrongly_charged(rows, work, poison)
        heads = heads(work)
        rows.reject { |row| poison.include?(row.id) }.reject { |row| fairly_charged?(row, heads) }.map(&:id)
      end

      def fairly_charged?(row, heads)
        return true if row.attempts.zero?
        return false if row.attempts >= @max_attempts

        case @lanes[row.lane]
        when :full then true
        when :late then @ordering == :none || heads[row.lane] == row.id
        else false
        end
      end

      def not_retired(by_id, poison)
        poison.reject { |id| by_id[id] && by_id[id].attempts == @max_attempts && !by_id[id].published }
      end

      def heads(work)
        work.group_by { |_, written| written.lane }
            .transform_values { |entries| entries.min_by { |_, written| written.n }.first }
      end

      # The first time that each message of a lane came, the lane's numbers must rise. A nack may let others pass.
      def disordered(work)
        return [] if @ordering == :none

        last = Hash.new(0)
        @arrived.uniq.reject do |id|
          written = work[id]
          next true if written.nil? || @lanes[written.lane] == :full

          rises = written.n > last[written.lane]
          last[written.lane] = [last[written.lane], written.n].max
          rises
        end
      end
    end

    # What a ledger found.
    Judgement = Struct.new(:committed, :published, :absent, :lost, :undelivered, :unmarked, :phantoms, :repeated,
                           :repeats_allowed, :charged, :disordered, :stuck, :misdeeds, :recovery, keyword_init: true) do
      def initialize(stuck: [], misdeeds: [], **)
        super
      end

      # @return [Array<String>] what must not be; empty when all is well
      def complaints
        [
          listed("marked published, in no queue", absent), listed("committed, in no table", lost),
          listed("committed, in no queue", undelivered), listed("in a queue, never marked", unmarked),
          listed("in a queue, never committed", phantoms), too_many_repeats,
          listed("charged or retired against the verdict table", charged), listed("out of order", disordered),
          listed("claimable and left waiting", stuck), *misdeeds
        ].compact
      end

      def ok?
        complaints.empty?
      end

      # @return [Array<String>] ids that something is wrong with
      def offenders
        absent | lost | undelivered | unmarked | phantoms | charged | disordered | stuck
      end

      # @return [Hash{Symbol => Integer}] for a matrix
      def numbers
        { committed: committed, published: published, repeated: repeated, allowed: repeats_allowed, absent: absent.size,
          lost: lost.size + phantoms.size, undelivered: undelivered.size + unmarked.size, charged: charged.size,
          stuck: stuck.size, disordered: disordered.size }
      end

      private

      def listed(what, ids)
        "#{ids.size} #{what}: #{ids.first(5).join(", ")}#{" ..." if ids.size > 5}" unless ids.empty?
      end

      def too_many_repeats
        "#{repeated} repeated, #{repeats_allowed} allowed" if repeated > repeats_allowed
      end
    end
  end
end
