# frozen_string_literal: true

require "thor"
require_relative "usage"

module AceMQ
  module CLI
    # "30d", "12h", "15m", "45s", or seconds.
    module Duration
      UNITS = { "s" => 1, "m" => 60, "h" => 3_600, "d" => 86_400, "w" => 604_800 }.freeze
      SHAPE = /\A(\d+(?:\.\d+)?)([smhdw])?\z/

      class << self
        # @param text [String]
        # @param name [Symbol] of the option
        # @return [Float] seconds
        # @raise [Thor::Error]
        def parse(text, name)
          parts = SHAPE.match(text.to_s)
          raise Thor::Error, "#{Usage.option(name)} must be a time such as 45s, 15m, 12h or 30d, not #{text.inspect}" unless parts

          parts[1].to_f * UNITS.fetch(parts[2] || "s")
        end

        # @param seconds [Numeric]
        # @return [String] "3 s", "4 m 12 s", "2 h 5 m", "3 d 4 h"
        def show(seconds)
          seconds = seconds.round
          return "#{seconds} s" if seconds < 60

          larger, smaller = [["d", "h", 86_400, 3_600], ["h", "m", 3_600, 60], ["m", "s", 60, 1]].find { |unit| seconds >= unit[2] }
                                                                                                 .then { |a, b, c, d| [[a, c], [b, d]] }
          rest = seconds % larger[1] / smaller[1]
          "#{seconds / larger[1]} #{larger[0]}#{" #{rest} #{smaller[0]}" if rest.positive?}"
        end
      end
    end
  end
end
