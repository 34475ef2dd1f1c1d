# frozen_string_literal: true

require_relative "../consuming/baton"
require_relative "../headers"
require_relative "../text"

module AceMQ
  module AMQP
    module Patterns
      # A handler that works on one message of a key at a time, in the order in which they were handed to it. Given to a
      # consumer as it is, that is the order of its queue.
      #
      # @api private
      class OrderedHandler
        # @param key [#call] takes the message
        # @param handler [#call]
        def initialize(key, handler)
          @key = key
          @handler = handler
          @lines = {}
          @lock = Mutex.new
          @moved = ConditionVariable.new
        end

        # @param message [Message]
        # @return [Ack] the handler's
        def call(message)
          key = @key.call(message).to_s
          return in_turn(key) { @handler.call(message) } unless key.empty?

          Consuming::Baton.pass
          @handler.call(message)
        end

        # @return [Proc] a lambda that a consumer knows by its `in_order?`
        def to_proc
          method(:call).to_proc.tap { |handler| handler.define_singleton_method(:in_order?) { true } }
        end

        private

        def in_turn(key)
          turn = Object.new
          wait_for(turn, key)
          yield
        ensure
          leave(turn, key)
        end

        def wait_for(turn, key)
          @lock.synchronize do
            line = (@lines[key] ||= []) << turn
            Consuming::Baton.pass
            @moved.wait(@lock) until line.first.equal?(turn)
          end
        end

        # One that waits may be killed, too.
        def leave(turn, key)
          @lock.synchronize do
            line = @lines[key]
            line&.delete(turn)
            @lines.delete(key) if line && line.empty?
            @moved.broadcast
          end
        end
      end

      # FNV-1a of 32 bits: the same in every process and every language of the family, which Ruby's `hash` is not.
      #
      # @api private
      module Partition
        OFFSET = 2_166_136_261
        PRIME = 16_777_619
        MASK = 0xFFFF_FFFF

        # @param bytes [String]
        # @return [Integer]
        def self.hash_of(bytes)
          bytes.each_byte.reduce(OFFSET) { |hash, byte| ((hash ^ byte) * PRIME) & MASK }
        end
      end

      class << self
        # Wraps a handler so that messages of one key are handled one after the other; those of other keys, and those
        # without a key, go beside them. A consumer that is given what is returned here keeps the order of its queue.
        # Within another wrapper, or called by a handler, messages may overtake each other on their way: one at a time
        # still, but in order only with `concurrency: 1`.
        #
        # This is about the threads of one consumer. Two processes on one queue know nothing of each other: give each
        # key a queue, and each queue one consumer, by {.partitioned_routing_key}. A message that is retried comes back
        # behind those that came after it.
        #
        # @param key [String, Symbol, #call] the name of a header, or what takes the message and returns the key
        # @yieldparam message [Message]
        # @yieldreturn [Ack]
        # @return [Proc] a lambda of one argument, the message
        # @raise [ArgumentError] without a block, or for a key that is neither
        # @example
        #   Patterns.ordered("account") { |message| book(message.payload) && accept }
        def ordered(key, &handler)
          raise ArgumentError, "ordered needs a block: the handler that is to run in order" unless handler

          with_ordering(key).call(handler)
        end

        # {.ordered} as middleware. Handlers wrapped by the same one keep the order each for itself.
        #
        # @param key (see .ordered)
        # @return [Proc] takes a handler, returns the wrapped one
        # @raise [ArgumentError] for a key that is neither
        def with_ordering(key)
          key = key.respond_to?(:call) ? key : header_reader(key)
          ->(inner) { OrderedHandler.new(key, inner).to_proc }
        end

        # Which of `count` queues the messages of a key belong to.
        #
        # @param key [#to_s]
        # @param count [Integer]
        # @return [Integer] from 0 to `count - 1`; for one key always the same, in every process and language
        # @raise [ArgumentError] when `count` is no Integer above 0
        def partition(key, count)
          unless count.is_a?(Integer) && count.positive?
            raise ArgumentError, "there must be 1 partition or more, not #{count.inspect}"
          end

          Partition.hash_of(Text.utf8(key.to_s) || key.to_s) % count
        end

        # @param prefix [String]
        # @param key [#to_s]
        # @param count [Integer] of partitions
        # @return [String] "orders.3": the routing key for the partition of the key
        # @raise [ArgumentError] see {.partition}
        # @example
        #   connection.publish(order, to: Patterns.partitioned_routing_key("orders", order.account_id, 8), exchange: "shop")
        def partitioned_routing_key(prefix, key, count)
          "#{prefix}.#{partition(key, count)}"
        end

        private

        def header_reader(name)
          named = name.is_a?(String) || name.is_a?(Symbol)
          unless named && !name.empty? && !name.start_with?(Headers::RESERVED_PREFIX)
            raise ArgumentError, "ordered needs the name of an application's header, or what answers call(message), " \
                                 "not #{name.inspect}"
          end

          ->(message) { message.envelope.headers[name.to_s] }
        end
      end
    end
  end
end
