# frozen_string_literal: true

require_relative "consumer"
require_relative "health"
require_relative "topology"

module AceMQ
  module AMQP
    # What a {Connection} does with queues that are consumed, and what looks on.
    module Consumers
      # Handles the messages of a queue until {Consumer#cancel} or {Connection#close}. Declares the queues around it
      # (dead letters, parked, waiting for a retry), never the queue itself.
      #
      # @param queue [String] exists already
      # @param codec [Object, nil] the connection's when nil
      # @param retry_policy [RetryPolicy, nil] the connection's when nil
      # @param prefetch [Integer, nil] messages held ahead or for a later attempt, up to 65535; 0 is no limit, nil
      #   the connection's
      # @param concurrency [Integer] handlers at a time, each on a thread of its own
      # @param tag [String, nil] what the broker shows for it, at most 255 bytes; made up of the queue's name when nil
      # @param arguments [Hash] of the subscription
      # @param retry_threshold [Numeric, nil] seconds from which on a retry waits in the broker; 0 is never, nil the
      #   connection's
      # @yieldparam message [Message]
      # @yieldreturn [Ack]
      # @return [Consumer]
      # @raise [ArgumentError] without a block, or for an option that cannot be right
      # @raise [TransportError] when the queue does not exist
      def consume(queue, codec: nil, retry_policy: nil, prefetch: nil, concurrency: 1, tag: nil, arguments: {},
                  retry_threshold: nil, &handler)
        raise ArgumentError, "consume needs a block: what is to be done with each message of #{queue}" unless handler

        options = Consuming::Options.new(self, queue, codec: codec, retry_policy: retry_policy, prefetch: prefetch,
                                                      concurrency: concurrency, tag: tag, arguments: arguments,
                                                      retry_threshold: retry_threshold)
        consumer = Consumer.new(self, options, handler)
        consumer.start
        @mutex.synchronize { @consumers |= [consumer] }
        consumer
      end

      # @return [Array<Consumer>] a copy, of those that are not cancelled
      def consumers
        @mutex.synchronize { @consumers.select(&:ours?) }
      end

      # Declares exchanges, queues and bindings.
      #
      # @param topology [Topology]
      # @return [nil]
      # @raise [TopologyError] before anything is declared
      # @raise [TransportError] at the first that the broker refuses
      def apply(topology)
        topology.apply(self)
        nil
      end

      # @return [Health::Report]
      def health
        Health.of(self)
      end

      # Looks at every message that is published through this connection; not at those of a relay.
      #
      # @param interceptor [Object, nil] see {Interceptors}
      # @param order [Integer, nil] lower ones go first; the interceptor's own `order` or 0 when nil
      # @yieldparam context [PublishContext] instead of an interceptor: before it is encoded
      # @return [self]
      # @raise [ArgumentError]
      def intercept_publish(interceptor = nil, order: nil, &block)
        interceptors.add_publish(interceptor, order, &block)
        self
      end

      # Looks at every delivery of the consumers of this connection.
      #
      # @param interceptor [Object, nil] see {Interceptors}
      # @param order [Integer, nil] lower ones go first; the interceptor's own `order` or 0 when nil
      # @yieldparam context [ConsumeContext] instead of an interceptor: before the handler
      # @return [self]
      # @raise [ArgumentError]
      def intercept_consume(interceptor = nil, order: nil, &block)
        interceptors.add_consume(interceptor, order, &block)
        self
      end

      # @return [Object] the transport's subscription
      # @api private
      def subscribe(queue, **options, &block)
        ask(:subscribe, queue, **options, &block)
      end

      # @api private
      def forget(consumer)
        @mutex.synchronize { @consumers -= [consumer] }
      end
    end
  end
end
