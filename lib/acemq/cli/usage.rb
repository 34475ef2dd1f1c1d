# frozen_string_literal: true

require "thor"

module AceMQ
  module CLI
    # What was typed and cannot be: said as such, and not as a fault of the program.
    module Usage
      class << self
        # Runs what checks the values of options.
        #
        # @return [Object] the block's
        # @raise [Thor::Error] for a value that it refuses
        def check
          yield
        rescue ArgumentError => e
          raise Thor::Error, e.message
        end

        # @param value [Numeric, nil] as Thor reads it
        # @param name [Symbol] of the option
        # @raise [Thor::Error]
        def whole!(value, name)
          raise Thor::Error, "#{option(name)} must be a whole number, not #{value}" unless value.nil? || value.is_a?(Integer)
        end

        # @param name [Symbol]
        # @return [String] as it is typed
        def option(name)
          "--#{name.to_s.tr("_", "-")}"
        end
      end
    end
  end
end
