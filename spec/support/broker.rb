# frozen_string_literal: true

require "securerandom"

module AceMQ
  module SpecSupport
    # The running broker, queues that nobody else uses, and what is in them.
    module Broker
      def broker
        AceMQ::TestServers.rabbitmq
      end

      # Closed after the example.
      def open_connection(url = broker.url, **options)
        AceMQ::AMQP::Connection.open(url, **options).tap { |connection| connections << connection }
      end

      # @param options [Hash] of declare_queue; classic and durable unless said otherwise
      # @return [String] the name of a new queue, deleted after the example
      def new_queue(connection, name = "spec.#{SecureRandom.hex(6)}", **options)
        connection.declare_queue(name, **{ queue_type: :classic }.merge(options)).tap do |queue|
          cleanups << -> { connection.delete_queue(queue) }
        end
      end

      # Takes everything out of a queue.
      # @return [Array<AceMQ::AMQP::Delivery>] in order
      def drain(connection, queue)
        deliveries = []
        while (delivery = connection.pull(queue))
          delivery.ack
          deliveries << delivery
        end
        deliveries
      end

      # The broker's memory alarm for the time of the block; its end is seen by the broker, if not at once by us.
      def under_alarm
        broker.alarm!(true)
        yield
      ensure
        broker.alarm!(false)
      end

      def elapsed
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        yield
        Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
      end

      def connections
        @connections ||= []
      end

      def cleanups
        @cleanups ||= []
      end
    end
  end
end

RSpec.configure do |config|
  config.include AceMQ::SpecSupport::Broker

  config.after do
    cleanups.reverse_each(&:call)
    connections.each { |connection| connection.close(timeout: 2) }
  end
end
