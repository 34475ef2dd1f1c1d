# frozen_string_literal: true

module AceMQ
  module Rails
    class Probe
      # What several sources tell in Prometheus' text format, as one page of it: a metric may be in it only once, and is
      # the first source's that has it.
      #
      # @api private
      class Page
        HEAD = /\A# (?:HELP|TYPE) (?<name>\S+)/

        def initialize
          @families = {}
        end

        # @param text [String, nil]
        # @return [self]
        def add(text)
          families_of(text.to_s).each { |name, lines| @families[name] ||= lines }
          self
        end

        # @return [String]
        def to_s
          @families.values.join
        end

        private

        def families_of(text)
          name = nil
          text.each_line.with_object({}) do |line, families|
            name = line[HEAD, :name] || name
            (families[name] ||= +"") << line
          end
        end
      end
    end
  end
end
