# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Keywords of stores, checked when a store is made.
      #
      # @api private
      module Settings
        class << self
          # @return [Numeric]
          # @raise [ArgumentError]
          def seconds!(value, name)
            # A Duration says that it is_a? Numeric.
            return Numeric === value ? value : value.to_f if value.is_a?(Numeric) && value.positive? # rubocop:disable Style/CaseEquality

            raise ArgumentError, "#{name}: must be seconds above 0, not #{value.inspect}"
          end

          # @return [Integer]
          # @raise [ArgumentError]
          def count!(value, name)
            return value if value.is_a?(Integer) && value.positive?

            raise ArgumentError, "#{name}: must be an Integer above 0, not #{value.inspect}"
          end
        end
      end
    end
  end
end
