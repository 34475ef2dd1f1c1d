# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # The figures that a consumer works within, whether they are its own or its connection's.
      #
      # @api private
      module Limits
        # As the wire has it: 16 bits.
        PREFETCH = (0..65_535)

        class << self
          # @param value [Object]
          # @param whose [String] for the error
          # @return [Integer] messages
          # @raise [ArgumentError]
          def prefetch!(value, whose = "")
            return value if value.is_a?(Integer) && PREFETCH.cover?(value)

            raise ArgumentError, "prefetch#{whose} must be an Integer from 0 (no limit) to #{PREFETCH.max}, not #{value.inspect}"
          end

          # @param value [Object]
          # @param whose [String] for the error
          # @return [Float] seconds
          # @raise [ArgumentError]
          def retry_threshold!(value, whose = "")
            return value.to_f if value.is_a?(Numeric) && value.real? && value.to_f.finite? && !value.negative?

            raise ArgumentError, "retry_threshold#{whose} must be seconds, 0 or more, not #{value.inspect}"
          end
        end
      end
    end
  end
end
