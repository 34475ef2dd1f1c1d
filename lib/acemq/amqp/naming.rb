# frozen_string_literal: true

module AceMQ
  module AMQP
    # The names that every library of the family gives to the queues and exchanges
    # around a queue, so that their consumers can share them.
    module Naming
      DEAD_LETTER_SUFFIX = ".dlq"
      PARKED_SUFFIX = ".parked"
      RETRY_EXCHANGE = "acemq.retry"
      DEAD_LETTER_EXCHANGE = "acemq.dlx"

      class << self
        # @param queue [String]
        # @return [String] where messages go that cannot succeed
        def dead_letter_queue(queue)
          "#{queue}#{DEAD_LETTER_SUFFIX}"
        end

        # @param queue [String]
        # @return [String] where messages go that need a person
        def parked_queue(queue)
          "#{queue}#{PARKED_SUFFIX}"
        end

        # @param queue [String]
        # @param seconds [Numeric]
        # @return [String] where messages of the queue wait for so long
        def retry_queue(queue, seconds)
          "#{queue}.retry.#{short(seconds)}"
        end

        # @param seconds [Numeric]
        # @return [String] "5m", "90s", "1500ms"; exact to the millisecond, as the queue's time to live is
        def short(seconds)
          ms = milliseconds(seconds)
          return "0s" unless ms.positive?
          return "#{ms}ms" unless (ms % 1000).zero?

          whole = ms / 1000
          return "#{whole / 3600}h" if (whole % 3600).zero?

          (whole % 60).zero? ? "#{whole / 60}m" : "#{whole}s"
        end

        # @param seconds [Numeric]
        # @return [Integer]
        def milliseconds(seconds)
          (seconds * 1000).round
        end
      end
    end
  end
end
