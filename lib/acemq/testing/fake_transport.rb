# frozen_string_literal: true

require_relative "fake_delivery"
require_relative "fake_subscription"
require_relative "faults"

module AceMQ
  module Testing
    # A transport without a broker: it remembers what it was told to publish and
    # to declare, and says that all of it worked. Safe to use from several threads.
    #
    # Messages can be pulled back from queues that they were addressed to by name
    # on the default exchange, or by a binding with exactly their routing key.
    class FakeTransport
      include Faults

      # What was published.
      #
      # @!attribute exchange [String]
      # @!attribute routing_key [String]
      # @!attribute body [String]
      # @!attribute content_type [String, nil]
      # @!attribute message_id [String, nil]
      # @!attribute headers [Hash]
      # @!attribute persistent [Boolean]
      # @!attribute reply_to [String, nil]
      # @!attribute mandatory [Boolean]
      Published = Struct.new(:exchange, :routing_key, :body, :content_type, :message_id, :headers, :persistent,
                             :reply_to, :mandatory, keyword_init: true)

      # What was declared: a name and everything that was said about it.
      Declared = Struct.new(:name, :options)

      # @return [String, nil] while set, publishing is refused with it
      attr_accessor :blocked_reason

      # @param blocked_reason [String, nil]
      def initialize(blocked_reason: nil)
        @blocked_reason = blocked_reason
        @published = []
        @queues = {}
        @exchanges = {}
        @bindings = []
        @missing = []
        @subscribed = []
        @waiting = Hash.new { |queues, name| queues[name] = [] }
        @open = true
        @mutex = Mutex.new
      end

      # @return [Array<Published>] a copy, in order
      def published
        @mutex.synchronize { @published.dup }
      end

      # @param queue [String]
      # @return [Array<Published>] what was sent to the queue by name, on the default exchange
      def published_to(queue)
        published.select { |message| message.exchange.empty? && message.routing_key == queue }
      end

      # @return [Array<Declared>] a copy
      def declared_queues
        @mutex.synchronize { @queues.values }
      end

      # @return [Array<Declared>] a copy
      def declared_exchanges
        @mutex.synchronize { @exchanges.values }
      end

      # @return [Array<Hash>] a copy; keys queue, exchange, routing_key
      def bindings
        @mutex.synchronize { @bindings.dup }
      end

      # Takes queues away: they do not exist, and a mandatory message to them is returned.
      #
      # @param names [Array<String>]
      # @return [self]
      def missing!(*names)
        @mutex.synchronize { @missing |= names }
        self
      end

      # @return [String] the message id
      # @raise [AceMQ::AMQP::PublishingPausedError] while {#blocked_reason} is set
      # @raise [AceMQ::AMQP::PublishError] when it is mandatory and its queue is missing
      def publish(exchange:, routing_key:, body:, content_type: nil, message_id: nil, headers: {}, persistent: true,
                  reply_to: nil, mandatory: false)
        message = Published.new(exchange: exchange, routing_key: routing_key, body: body, content_type: content_type,
                                message_id: message_id, headers: headers, persistent: persistent, reply_to: reply_to,
                                mandatory: mandatory)
        fate = suffer(message)
        @mutex.synchronize { accept(message) } unless fate == :lost
        message_id
      end

      # @param messages [Array<Hash>] keywords of {#publish}
      # @return [Array<String, Exception>] per message its id, or why it was refused
      def publish_all(messages)
        messages.map do |message|
          publish(**message)
        rescue AceMQ::AMQP::PublishError => e
          e
        end
      end

      # @return [nil]
      def declare_exchange(name, **options)
        @mutex.synchronize { @exchanges[name] = Declared.new(name, options) }
        nil
      end

      # @return [String] the name, made up when it is empty
      def declare_queue(name, **options)
        @mutex.synchronize do
          name = "fake.#{@queues.size + 1}" if name.empty?
          @missing -= [name]
          @queues[name] = Declared.new(name, options)
        end
        name
      end

      # @return [nil]
      def bind(queue:, exchange:, routing_key: "")
        @mutex.synchronize { @bindings |= [{ queue: queue, exchange: exchange, routing_key: routing_key }] }
        nil
      end

      # Remembers a subscription. What is published is not delivered to it; {#deliver} does that.
      #
      # @return [FakeSubscription]
      # @raise [AceMQ::AMQP::TransportError] for a queue that was taken away
      def subscribe(queue, **options, &receiver)
        subscription = FakeSubscription.new(queue, options, &receiver)
        @mutex.synchronize do
          raise AceMQ::AMQP::TransportError, "there is no queue #{queue.inspect}" if @missing.include?(queue)

          @subscribed << subscription
        end
        subscription
      end

      # @return [Array<FakeSubscription>] a copy; with queue, options and subscription
      def subscribed
        @mutex.synchronize { @subscribed.dup }
      end

      # @param queue [String]
      # @return [Hash{Symbol => Object}, nil] the keywords of the last subscription to the queue
      def options_for(queue)
        subscribed.reverse.find { |subscription| subscription.queue == queue }&.options
      end

      # Hands a message to the last open subscription of a queue, on this thread.
      #
      # @param queue [String]
      # @param payload [Object] see {FakeDelivery#initialize}
      # @param options [Hash] see {FakeDelivery#initialize}
      # @return [FakeDelivery] with what was answered
      # @raise [ArgumentError] when nobody has subscribed
      def deliver(queue, payload = {}, **options)
        subscription = subscribed.reverse.find { |candidate| candidate.queue == queue && candidate.open? }
        raise ArgumentError, "nobody has subscribed to #{queue.inspect}" unless subscription

        FakeDelivery.new(payload, queue: queue, **options).tap { |fake| subscription.receive(fake.delivery) }
      end

      # @return [AceMQ::AMQP::Delivery, nil]
      def pull(queue)
        message = @mutex.synchronize { @waiting[queue].shift }
        delivery(queue, message) if message
      end

      # @see AceMQ::AMQP::Connection#inbox
      def inbox
        held = {}.compare_by_identity
        inbox = AceMQ::AMQP::Inbox.new(self) { |delivery| hold(delivery, held) }
        yield inbox
      ensure
        inbox&.close
        held.keys.reverse_each { |delivery| delivery.nack(requeue: true) }
      end

      # @return [Integer]
      def message_count(queue)
        @mutex.synchronize { @waiting[queue].size }
      end

      # @return [Boolean] whether it was declared and not taken away
      def queue_exists?(name)
        @mutex.synchronize { @queues.key?(name) && !@missing.include?(name) }
      end

      # @return [nil]
      def delete_queue(name)
        @mutex.synchronize do
          @queues.delete(name)
          @waiting.delete(name)
          @bindings.reject! { |binding| binding[:queue] == name }
        end
        nil
      end

      # @return [Boolean]
      def open?
        @open
      end

      # @return [nil]
      def close(**)
        @open = false
        nil
      end

      private

      def accept(message)
        refuse_while_blocked
        @open = true
        targets = targets(message)
        refuse_unroutable(message) if message.mandatory && targets.any? && (targets - @missing).empty?

        @published << message
        (targets - @missing).each { |queue| @waiting[queue] << message }
      end

      def refuse_while_blocked
        return unless blocked_reason

        raise AceMQ::AMQP::PublishingPausedError, "the broker takes nothing at present: #{blocked_reason}"
      end

      def refuse_unroutable(message)
        raise AceMQ::AMQP::PublishError.new("no queue is bound to #{message.exchange.inspect} for " \
                                            "#{message.routing_key.inspect}",
                                            unroutable: true, scope: :destination, exchange: message.exchange,
                                            routing_key: message.routing_key)
      end

      def targets(message)
        return [message.routing_key] if message.exchange.empty?

        @bindings.select { |b| b[:exchange] == message.exchange && b[:routing_key] == message.routing_key }
                 .map { |b| b[:queue] }
      end

      # Among those held until it is settled.
      def hold(delivery, held)
        held[delivery] = true
        ack, nack = delivery.to_h.values_at(:on_ack, :on_nack)
        delivery.on_ack = -> { held.delete(delivery) && ack.call }
        delivery.on_nack = ->(requeue) { held.delete(delivery) && nack.call(requeue) }
        delivery
      end

      def delivery(queue, message)
        AceMQ::AMQP::Delivery.new(
          body: message.body, content_type: message.content_type.to_s, routing_key: message.routing_key,
          message_id: message.message_id, headers: message.headers, redelivered: false, reply_to: message.reply_to,
          on_ack: -> {}, on_nack: ->(requeue) { @mutex.synchronize { @waiting[queue].unshift(message) } if requeue }
        )
      end
    end
  end
end
