# frozen_string_literal: true

module AceMQ
  module Chaos
    # What came of all episodes, a line for each combination of failpoint, database and what died.
    class Matrix
      HEAD = %w[failpoint database died runs committed published repeated allowed absent lost undelivered charged stuck
                disordered recovery].freeze

      Entry = Struct.new(:runs, :committed, :published, :repeated, :allowed, :absent, :lost, :undelivered, :charged, :stuck,
                         :disordered, :recovery) do
        def add(judgement)
          self.runs += 1
          judgement.numbers.each { |name, number| self[name] += number }
          self.recovery = [recovery, judgement.recovery].compact.max
        end
      end

      def initialize
        @entries = {}
      end

      # @param cell [Plan::Cell]
      # @param judgement [Judgement]
      def add(cell, judgement)
        entry(@entries, cell.to_a).add(judgement)
        entry(@entries, %w[all all all]).add(judgement)
      end

      # @return [String]
      def to_s
        entries = @entries.sort_by { |cell, _| [cell.first == "all" ? 1 : 0, cell] }
        lines = [HEAD] + entries.map { |cell, entry| line(cell, entry) }
        widths = HEAD.each_index.map { |column| lines.map { |line| line[column].size }.max }
        lines.map { |line| pad(line, widths) }.join("\n")
      end

      private

      def entry(entries, key)
        entries[key] ||= Entry.new(*Array.new(Entry.members.size - 1, 0), nil)
      end

      def line(cell, entry)
        *numbers, recovery = entry.to_a
        [*cell, *numbers.map(&:to_s), recovery ? format("%.1f s", recovery) : "-"]
      end

      def pad(line, widths)
        line.each_with_index.map { |text, i| i < 3 ? text.ljust(widths[i]) : text.rjust(widths[i]) }.join("  ").rstrip
      end
    end
  end
end
