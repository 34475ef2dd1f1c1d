# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # How many handlers run.
      #
      # @api private
      class Flight
        # @return [Integer]
        attr_reader :count

        def initialize
          @count = 0
          @mutex = Mutex.new
          @changed = ConditionVariable.new
        end

        # @return [Integer] the new count
        def enter
          @mutex.synchronize { @count += 1 }
        end

        # @return [Integer] the new count
        def leave
          @mutex.synchronize do
            @count -= 1
            @changed.broadcast
            @count
          end
        end

        # @param deadline [Deadline]
        # @return [Boolean] whether none runs any more
        def wait_until_landed(deadline)
          @mutex.synchronize do
            @changed.wait(@mutex, deadline.left) until @count.zero? || deadline.passed?
            @count.zero?
          end
        end
      end
    end
  end
end
