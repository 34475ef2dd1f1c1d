# frozen_string_literal: true

require "securerandom"
require_relative "errors"

module AceMQ
  module AMQP
    # The queue with which a connection without consumers asks whether the broker answers. Always the same one: what a
    # probe that was cut off has left behind, the next one takes away.
    #
    # @api private
    class ProbeQueue
      def initialize(connection)
        @connection = connection
      end

      # @return [void] once the broker has answered
      # @raise [TransportError]
      def round_trip
        queue = name
        declare(queue)
        @connection.delete_queue(queue)
      end

      private

      def declare(queue)
        @connection.declare_queue(queue, queue_type: :classic, durable: false, auto_delete: true, exclusive: true)
      rescue TransportError
        # It may belong to a lost link that the broker still takes for alive.
        @named = nil
        raise
      end

      # A forked child has a link of its own, on which the parent's queue is locked.
      def name
        named = @named
        named = @named = [Process.pid, "acemq-health-#{SecureRandom.uuid}"] unless named&.first == Process.pid
        named.last
      end
    end
    private_constant :ProbeQueue
  end
end
