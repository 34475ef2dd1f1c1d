# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Removing many rows in small statements: each waits for nobody long, and nobody waits long for one.
      #
      # @api private
      class Purging
        # @param batch [Integer] rows of one statement
        # @param pause [Numeric] seconds between two statements
        # @raise [ArgumentError]
        def initialize(batch, pause)
          raise ArgumentError, "batch: must be above 0, not #{batch.inspect}" unless batch.is_a?(Integer) && batch.positive?
          unless pause.is_a?(Numeric) && !pause.negative?
            raise ArgumentError, "pause: must be seconds, 0 or more, not #{pause.inspect}"
          end

          @batch = batch
          @pause = pause
        end

        # @param progress [#call, nil] told the rows removed so far
        # @yieldreturn [Integer] rows removed by one statement
        # @return [Integer] rows removed
        def run(progress)
          removed = 0
          loop do
            found = yield
            removed += found
            progress&.call(removed)
            return removed if found < @batch

            sleep(@pause) if @pause.positive?
          end
        end
      end
    end
  end
end
