# frozen_string_literal: true

require_relative "errors"
require_relative "naming"
require_relative "queue_type"
require_relative "retry_ladder"
require_relative "retry_policy"
require_relative "topology_check"

module AceMQ
  module AMQP
    # Exchanges, queues and bindings as an application wants them, checked as a
    # whole before anything is declared. The same set is declared again at every
    # boot, and changes nothing that is there already.
    #
    # @example
    #   AceMQ::AMQP::Topology.new
    #                        .exchange("shop-events", :topic)
    #                        .queue("shop.payments", dead_letter: true, retry_policy: policy)
    #                        .binding("shop.payments", "shop-events", "order.*")
    #                        .apply(connection)
    class Topology
      Exchange = Struct.new(:name, :kind, :durable, :auto_delete, :arguments, keyword_init: true)
      Queue = Struct.new(:name, :queue_type, :durable, :auto_delete, :exclusive, :arguments, keyword_init: true)
      Binding = Struct.new(:queue, :exchange, :routing_key, keyword_init: true)

      # @return [String]
      attr_reader :dead_letter_exchange
      # @return [Array<Exchange>]
      attr_reader :exchanges
      # @return [Array<Queue>]
      attr_reader :queues
      # @return [Array<Binding>]
      attr_reader :bindings

      # @param dead_letter_exchange [String]
      def initialize(dead_letter_exchange: Naming::DEAD_LETTER_EXCHANGE)
        @dead_letter_exchange = dead_letter_exchange.to_s
        @exchanges = []
        @queues = []
        @bindings = []
        @implied = []
      end

      # @param name [String]
      # @param kind [String, Symbol] direct, fanout, topic, headers, or a plugin's "x-..."
      # @param durable [Boolean]
      # @param auto_delete [Boolean]
      # @param arguments [Hash]
      # @return [self]
      def exchange(name, kind, durable: true, auto_delete: false, arguments: {})
        add(exchanges, Exchange.new(name: name.to_s, kind: kind.to_s, durable: durable, auto_delete: auto_delete,
                                    arguments: arguments))
      end

      # @param name [String]
      # @param durable [Boolean]
      # @param auto_delete [Boolean]
      # @param exclusive [Boolean]
      # @param arguments [Hash]
      # @param queue_type [Symbol, nil] `:quorum`, `:classic` or `:stream`; quorum where the other flags allow it
      # @param dead_letter [Boolean] what the broker gives up itself (a reject, a full queue) goes to its dead-letter queue
      # @param retry_policy [RetryPolicy, nil] with the queues that its delays need, as {#retry_ladder}
      # @param retry_threshold [Numeric] seconds
      # @return [self]
      def queue(name, durable: true, auto_delete: false, exclusive: false, arguments: {}, queue_type: nil,
                dead_letter: false, retry_policy: nil, retry_threshold: RetryLadder::DEFAULT_THRESHOLD)
        name = name.to_s
        arguments = arguments.merge(dead_letter_arguments(name)) if dead_letter
        add(queues, Queue.new(name: name, queue_type: queue_type, durable: durable, auto_delete: auto_delete,
                              exclusive: exclusive, arguments: arguments))
        dead_letter_queue(name) if dead_letter
        retry_policy ? retry_ladder(name, retry_policy, threshold: retry_threshold) : self
      end

      # The queues in which messages of a queue wait for a retry, and the way back.
      #
      # @param source [String] a queue
      # @param policy [RetryPolicy]
      # @param threshold [Numeric] seconds from which on a retry waits in the broker
      # @return [self]
      def retry_ladder(source, policy, threshold: RetryLadder::DEFAULT_THRESHOLD)
        ladder = RetryLadder.for(source.to_s, policy, threshold: threshold)
        return self if ladder.empty?

        imply(exchanges, direct(Naming::RETRY_EXCHANGE))
        ladder.rungs.each { |rung| imply(queues, classic(rung.queue, rung.arguments)) }
        imply(bindings, Binding.new(queue: source.to_s, exchange: Naming::RETRY_EXCHANGE, routing_key: source.to_s))
      end

      # @param source [String] a queue
      # @return [self]
      def dead_letter_queue(source)
        set_aside(Naming.dead_letter_queue(source))
      end

      # @param source [String] a queue
      # @return [self]
      def parked_queue(source)
        set_aside(Naming.parked_queue(source))
      end

      # @param queue [String]
      # @param exchange [String]
      # @param routing_key [String]
      # @return [self]
      def binding(queue, exchange, routing_key = "")
        add(bindings, Binding.new(queue: queue.to_s, exchange: exchange.to_s, routing_key: routing_key.to_s))
      end

      # @return [Array<String>] what does not fit together; empty when all is well
      def problems
        TopologyCheck.new(self).problems
      end

      # @return [self]
      # @raise [TopologyError] naming every problem
      def validate!
        found = problems
        return self if found.empty?

        raise TopologyError, "the topology cannot be declared: #{found.join("; ")}"
      end

      # @return [Array<String>] what {#apply} would declare, in its order; asks no broker
      def plan
        exchanges.map { |exchange| describe_exchange(exchange) } + queues.map { |queue| describe_queue(queue) } +
          bindings.map { |b| "bind #{b.queue} to #{b.exchange} for #{b.routing_key.inspect}" }
      end

      # @param connection [Connection]
      # @return [self]
      # @raise [TopologyError] before anything is declared
      # @raise [TransportError] at the first that the broker refuses
      def apply(connection)
        validate!
        exchanges.each { |exchange| declare_exchange(connection, exchange) }
        queues.each { |queue| connection.declare_queue(queue.name, **queue.to_h.except(:name)) }
        bindings.each { |b| connection.bind(**b.to_h) }
        self
      end

      # @return [Boolean]
      def empty?
        [exchanges, queues, bindings].all?(&:empty?)
      end

      # @return [String]
      def to_s
        plan.join("\n")
      end

      private

      def add(list, entry)
        # What was added by implication gives way to what is said.
        replaced = list.find { |other| same?(other, entry) && @implied.any? { |implied| implied.equal?(other) } }
        replaced ? list[list.index(replaced)] = entry : list << entry
        self
      end

      def imply(list, entry)
        return self if list.any? { |other| same?(other, entry) }

        list << entry
        @implied << entry
        self
      end

      def same?(one, other)
        one.is_a?(Binding) ? one == other : one.name == other.name
      end

      def set_aside(queue)
        imply(exchanges, direct(dead_letter_exchange))
        imply(queues, classic(queue, {}))
        imply(bindings, Binding.new(queue: queue, exchange: dead_letter_exchange, routing_key: queue))
      end

      def dead_letter_arguments(queue)
        { "x-dead-letter-exchange" => dead_letter_exchange,
          "x-dead-letter-routing-key" => Naming.dead_letter_queue(queue) }
      end

      def direct(name)
        Exchange.new(name: name, kind: "direct", durable: true, auto_delete: false, arguments: {})
      end

      def classic(name, arguments)
        Queue.new(name: name, queue_type: QueueType::CLASSIC, durable: true, auto_delete: false, exclusive: false,
                  arguments: arguments)
      end

      def declare_exchange(connection, exchange)
        connection.declare_exchange(exchange.name, **exchange.to_h.except(:name))
      end

      def describe_exchange(exchange)
        "exchange #{exchange.name} (#{[exchange.kind, *flags(exchange), *exchange.arguments.map { |k, v| "#{k}=#{v}" }].join(", ")})"
      end

      def describe_queue(queue)
        type, arguments = QueueType.resolve(name: queue.name, requested: queue.queue_type, durable: queue.durable,
                                            exclusive: queue.exclusive, auto_delete: queue.auto_delete,
                                            arguments: queue.arguments)
        shown = arguments.except(QueueType::ARGUMENT).map { |name, value| "#{name}=#{value}" }
        "queue #{queue.name} (#{[type, *flags(queue), *shown].join(", ")})"
      end

      def flags(entry)
        [entry.durable ? "durable" : "transient", ("auto-delete" if entry.auto_delete),
         ("exclusive" if entry.respond_to?(:exclusive) && entry.exclusive)].compact
      end
    end
  end
end
