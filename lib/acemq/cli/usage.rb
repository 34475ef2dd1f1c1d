# frozen_string_literal: true

require "thor"

module AceMQ
  module CLI
    # What was typed and cannot be: said as such, and not as a fault of the program.
    module Usage
      # Runs what checks the values of options.
      #
      # @return [Object] the block's
      # @raise [Thor::Error] for a value that it refuses
      def self.check
        yield
      rescue ArgumentError => e
        raise Thor::Error, e.message
      end
    end
  end
end
