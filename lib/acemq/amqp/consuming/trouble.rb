# frozen_string_literal: true

require_relative "../log"
require_relative "../telemetry"

module AceMQ
  module AMQP
    module Consuming
      # Copies that cannot be placed: each is counted, and each change is told once.
      #
      # @api private
      class Trouble
        def initialize(queue, meter)
          @queue = queue
          @meter = meter
          @told = {}
          @mutex = Mutex.new
        end

        # @param target [String] the queue it was meant for
        # @param error [Exception]
        def met(target, error)
          @meter.count(Telemetry::SET_ASIDE_FAILED, queue: @queue, target: target)
          state = [error.class, (error.unroutable? if error.respond_to?(:unroutable?))]
          return unless @mutex.synchronize { @told[target] != state && (@told[target] = state) }

          Log.error("a message of #{@queue} cannot be put into #{target}; it stays unacknowledged and is tried again: " \
                    "#{error.class}: #{error.message}")
        end

        # @param target [String]
        def over(target)
          return if @told.empty?
          return unless @mutex.synchronize { @told.delete(target) }

          Log.info("messages of #{@queue} reach #{target} again")
        end
      end
    end
  end
end
