# frozen_string_literal: true

require_relative "errors"
require_relative "exchange_kind"
require_relative "headers"
require_relative "queue_type"
require_relative "short_string"

module AceMQ
  module AMQP
    # What is wrong with a {Topology}: everything that its declaration would be refused for before the broker is asked.
    #
    # @api private
    class TopologyCheck
      # Exchanges that every broker has.
      BUILT_IN = "amq."

      # @param topology [Topology]
      def initialize(topology)
        @exchanges = topology.exchanges
        @queues = topology.queues
        @bindings = topology.bindings
      end

      # @return [Array<String>]
      def problems
        names + duplicates + kinds + arguments + types + dangling + keys
      end

      private

      def names
        each_list { |what, list| list.filter_map { |entry| name_problem(what, entry.name) } }
      end

      def name_problem(what, name)
        text = ShortString.check!(name, what)
        "an #{what} has no name".sub("an q", "a q") if text.strip.empty?
      rescue ArgumentError => e
        e.message
      end

      def duplicates
        each_list do |what, list|
          list.map(&:name).tally.select { |name, count| count > 1 && !name_problem(what, name) }
              .map { |name, count| "the #{what} #{name} is declared #{count} times" }
        end
      end

      def each_list
        { "exchange" => @exchanges, "queue" => @queues }.flat_map { |what, list| yield what, list }
      end

      def kinds
        @exchanges.filter_map do |exchange|
          next "the exchange #{exchange.name} has no kind" if exchange.kind.empty?

          refusal { ExchangeKind.check!(exchange.kind, exchange.name) }
        end
      end

      def arguments
        @exchanges.filter_map do |exchange|
          refusal("the exchange #{exchange.name}: ") { Headers.render(exchange.arguments) }
        end
      end

      def types
        @queues.filter_map do |queue|
          refusal("the queue #{queue.name}: ") { resolve(queue) }
        rescue QueueTypeError => e
          e.message
        end
      end

      def resolve(queue)
        QueueType.resolve(name: queue.name, requested: queue.queue_type, durable: queue.durable, exclusive: queue.exclusive,
                          auto_delete: queue.auto_delete, arguments: queue.arguments)
      end

      def dangling
        @bindings.flat_map do |b|
          [("the queue #{b.queue} is bound and not declared" if @queues.none? { |queue| queue.name == b.queue }),
           exchange_problem(b)].compact
        end
      end

      def exchange_problem(binding)
        name = binding.exchange
        if name.empty?
          "the queue #{binding.queue} is bound to the default exchange, which has every queue bound already"
        elsif name.start_with?(BUILT_IN)
          name_problem("exchange", name)
        elsif @exchanges.none? { |exchange| exchange.name == name }
          "the queue #{binding.queue} is bound to the exchange #{name}, which is not declared"
        end
      end

      def keys
        @bindings.filter_map { |b| refusal { ShortString.check!(b.routing_key, "a routing key of #{b.queue}") } }
      end

      # Why something is refused, if it is.
      def refusal(of_what = "")
        yield
        nil
      rescue ArgumentError => e
        "#{of_what}#{e.message}"
      end
    end
    private_constant :TopologyCheck
  end
end
