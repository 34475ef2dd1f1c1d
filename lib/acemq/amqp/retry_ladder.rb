# frozen_string_literal: true

require_relative "naming"

module AceMQ
  module AMQP
    # The queues in which messages of one queue wait for their next attempt: one
    # per delay, because the broker expires messages only at the head of a queue
    # and a long wait would hold up a short one.
    class RetryLadder
      # Seconds from which on a retry waits in the broker instead of the consumer.
      DEFAULT_THRESHOLD = 30.0

      # The longest time to live that the broker takes: 2^32 - 1 ms, some 49 days.
      MAX_MILLISECONDS = (2**32) - 1

      # @!attribute delay [Float] seconds
      # @!attribute queue [String]
      # @!attribute arguments [Hash{String => Object}] of the declaration
      Rung = Struct.new(:delay, :queue, :arguments, keyword_init: true)

      # @return [String] the queue that the messages come from and go back to
      attr_reader :source
      # @return [Array<Rung>] by delay
      attr_reader :rungs

      class << self
        # @param source [String] a queue
        # @param policy [RetryPolicy]
        # @param threshold [Numeric] seconds; 0 is never the broker
        # @return [RetryLadder]
        def for(source, policy, threshold: DEFAULT_THRESHOLD)
          delays = policy.delays.select { |delay| waits_in_broker?(delay, threshold) }
          new(source, delays)
        end

        # @param delay [Numeric] seconds
        # @param threshold [Numeric] seconds
        # @return [Boolean]
        def waits_in_broker?(delay, threshold)
          threshold.positive? && delay.positive? && delay >= threshold
        end
      end

      # @param source [String]
      # @param delays [Array<Numeric>] seconds; those of one name share the first rung
      def initialize(source, delays)
        @source = source
        @rungs = delays.sort.map { |delay| rung(delay) }.uniq(&:queue).freeze
      end

      # @return [Array<String>] names
      def queues
        rungs.map(&:queue)
      end

      # @return [Boolean]
      def empty?
        rungs.empty?
      end

      # @param delay [Numeric] seconds
      # @return [Rung, nil] the first that waits as long, or the longest
      def rung_for(delay)
        ms = Naming.milliseconds([delay, MAX_MILLISECONDS / 1000.0].min)
        rungs.find { |rung| rung.arguments["x-message-ttl"] >= ms } || rungs.last
      end

      # Declares the rungs and the way back from them; nothing when there are none.
      #
      # @param connection [Connection]
      # @return [self]
      # @raise [TransportError] also when the source queue does not exist
      def declare(connection)
        return self if empty?

        declare_way_back(connection)
        rungs.each { |rung| declare_rung(connection, rung) }
        self
      end

      # Declares where messages go that are set aside.
      #
      # @param connection [Connection]
      # @return [self]
      # @raise [TransportError]
      def declare_dead_letters(connection)
        declare_dead_letter_exchange(connection)
        set_aside.each { |queue| declare_set_aside(connection, queue) }
        self
      end

      # @return [Array<String>] the dead-letter queue and the parked queue
      # @api private
      def set_aside
        [Naming.dead_letter_queue(source), Naming.parked_queue(source)]
      end

      # Without this binding the broker would drop what has waited long enough.
      # @api private
      def declare_way_back(connection)
        connection.declare_exchange(Naming::RETRY_EXCHANGE, kind: "direct")
        connection.bind(queue: source, exchange: Naming::RETRY_EXCHANGE, routing_key: source)
      end

      # @api private
      def declare_rung(connection, rung)
        connection.declare_queue(rung.queue, queue_type: :classic, arguments: rung.arguments)
      end

      # @api private
      def declare_dead_letter_exchange(connection)
        connection.declare_exchange(Naming::DEAD_LETTER_EXCHANGE, kind: "direct")
      end

      # @api private
      def declare_set_aside(connection, queue)
        connection.declare_queue(queue, queue_type: :classic)
        connection.bind(queue: queue, exchange: Naming::DEAD_LETTER_EXCHANGE, routing_key: queue)
      end

      private

      def rung(delay)
        seconds = [delay.to_f, MAX_MILLISECONDS / 1000.0].min
        Rung.new(delay: seconds, queue: Naming.retry_queue(source, seconds), arguments: {
          "x-message-ttl" => Naming.milliseconds(seconds),
          "x-dead-letter-exchange" => Naming::RETRY_EXCHANGE,
          "x-dead-letter-routing-key" => source
        }.freeze)
      end
    end
  end
end
