# frozen_string_literal: true

require_relative "../deadline"
require_relative "../errors"

module AceMQ
  module AMQP
    module Consuming
      # The end of several consumers within one deadline.
      #
      # @api private
      class Drain
        # @return [Deadline]
        attr_reader :deadline

        # @param timeout [Numeric] seconds
        # @raise [ArgumentError]
        def initialize(timeout)
          @deadline = Deadline.in(timeout)
          @timeout = timeout
          @stranded = {}
        end

        # All of them at once, so that none starts a handler while another is waited for.
        #
        # @param consumers [Array<Consumer>]
        # @return [Array<StandardError>]
        def stop(consumers)
          @consumers = consumers
          each { |consumer| consumer.stop(deadline.left) }
        end

        # @return [Array<StandardError>]
        def finish
          failures = each { |consumer| consumer.drain(deadline) }
          @consumers.each { |consumer| strand(consumer) }
          failures + each { |consumer| consumer.release(deadline.left) }
        end

        # @return [nil]
        # @raise [DrainTimeout]
        def check!
          raise DrainTimeout.new(stranded: @stranded, timeout: @timeout) if @stranded.any?
        end

        private

        def strand(consumer)
          count = consumer.in_flight
          @stranded[consumer.queue] = @stranded.fetch(consumer.queue, 0) + count if count.positive?
        end

        # Side by side: each may wait for an answer of the broker, and there is one deadline.
        def each
          @consumers.map { |consumer| Thread.new { failure { yield consumer } } }.filter_map(&:value)
        end

        def failure
          yield
          nil
        rescue StandardError => e
          e
        end
      end
    end
  end
end
