# frozen_string_literal: true

require_relative "../native"
require_relative "consuming/limits"
require_relative "deadline"
require_relative "delivery"
require_relative "errors"
require_relative "headers"
require_relative "inbox"
require_relative "short_string"
require_relative "subscription"
require_relative "ticket"
require_relative "transport_options"

begin
  require "bigdecimal" # received decimals are Rationals without it; from Ruby 3.4 on it is a gem
rescue LoadError
  nil
end

module AceMQ
  module AMQP
    # The native way to a broker: confirmed publishing over one connection, single
    # gets over another. Safe to share between threads; a forked child that uses
    # it dials connections of its own and leaves the parent's alone.
    class Transport
      # What one publish and one `publish_all` say of a message, in the order the extension takes it.
      PARTS = %i[exchange routing_key body content_type message_id headers persistent reply_to mandatory].freeze

      # Bytes of bodies and headers without a confirm at any time. RabbitMQ's own flow control sets in far above.
      DEFAULT_IN_FLIGHT_BYTES = 16 * 1024 * 1024

      # @return [Integer] messages of one `publish_all` without a confirm at any time
      attr_reader :max_outstanding_publishes
      # @return [Float] seconds without any confirm until a publish is given up
      attr_reader :confirm_timeout

      class << self
        # Dials the broker.
        #
        # @param url [String]
        # @param options [Hash] see {#initialize}
        # @return [Transport]
        # @raise [ConfigurationError] for a setting that cannot be right
        # @raise [TransportError] when no host of the URL takes us
        def open(url, **options)
          new(url, **options).connect
        end

        # @param url [String]
        # @return [String] the URL with `***` for its password
        def redact(url)
          url.to_s.sub(%r{\A([a-z]+://[^:/@]*):.*@}m, '\1:***@')
        end
      end

      # Dials nothing yet: the first publish or declaration does.
      #
      # @param url [String] `amqp://user:password@host:5672,other:5672/vhost?heartbeat=30`; every part but a host
      #   may be left off, and everything is percent-encoded
      # @option options [Integer, Symbol] :heartbeat seconds, 1 to 65535; `:server` (default) takes the broker's
      # @option options [Numeric, nil] :connection_timeout seconds for a dial as a whole: all hosts, TCP, TLS and handshake;
      #   nil takes the URL's `connection_timeout` (milliseconds there), or 10
      # @option options [Numeric] :confirm_timeout seconds without any confirm until a publish is given up, and the longest
      #   wait for any other answer of the broker; 10, as most clients have it
      # @option options [Security, nil] :security nil trusts the system's authorities where the URL says amqps
      # @option options [Credentials, nil] :credentials instead of the URL's user and password
      # @option options [String, nil] :client_name what the broker's pages call the connections
      # @option options [Integer] :max_outstanding_publishes messages of one `publish_all` on the way at any time; 1000 as in
      #   the family
      # @raise [ConfigurationError] naming the setting
      def initialize(url, **options)
        settings = TransportOptions.new(url, **options)
        @confirm_timeout = settings.confirm_timeout
        @max_outstanding_publishes = settings.max_outstanding_publishes
        @location = settings.location
        @client = Native::Client.new(url, settings.native)
        @subscriptions = []
        @mutex = Mutex.new
      end

      # Dials unless there is a live connection.
      #
      # @return [self]
      # @raise [TransportError]
      def connect
        @client.connect
        self
      end

      # @return [Boolean] whether there is a live connection; never dials
      def open?
        @client.open?
      end

      # @return [String, nil] the broker's reason while it has blocked us; it says so after a publish, not before
      def blocked_reason
        @client.blocked_reason
      end

      # @return [Boolean]
      def blocked?
        !blocked_reason.nil?
      end

      # Sends one message and waits for its confirm.
      #
      # @return [String] the message id
      # @raise [PublishError, ArgumentError]
      def publish(**message)
        publish_all([message]).first.tap { |outcome| raise outcome if outcome.is_a?(Exception) }
      end

      # Sends many and waits for all.
      #
      # @param messages [Array<Hash>] of the keywords of {#publish}
      # @return [Array<String, Exception>] for each its id, or why it was not confirmed
      def publish_all(messages)
        messages = messages.map { |message| with_id(message) }
        outcomes = submit(messages, in_flight: max_outstanding_publishes, relay: false).wait_for_ever
        messages.zip(outcomes).map { |message, outcome| outcome || message[:message_id] }
      end

      # Hands a batch over and returns at once.
      #
      # @param messages [Array<Hash>] of the keywords of {#publish}; `headers` may be JSON text
      # @param in_flight [Integer] messages without a confirm at any time
      # @param in_flight_bytes [Integer] their bytes
      # @param confirm_timeout [Numeric] seconds since the last confirm
      # @param send_by [Numeric, nil] seconds from now after which nothing more is written
      # @param relay [Boolean] wait out an alarm of the broker, and write nothing more for a destination that has
      #   not taken a message
      # @return [Ticket]
      # @api private
      def submit(messages, in_flight:, in_flight_bytes: DEFAULT_IN_FLIGHT_BYTES, confirm_timeout: self.confirm_timeout,
                 send_by: nil, relay: true)
        parts = messages.map { |message| parts_of(message) }
        pace = pace(in_flight: in_flight, in_flight_bytes: in_flight_bytes, confirm_timeout: confirm_timeout.to_f,
                    send_by: send_by&.to_f, relay: relay)
        Ticket.new(@client.submit(parts, pace), messages)
      end

      # @return [nil]
      # @raise [TransportError]
      def declare_exchange(name, kind:, durable: true, auto_delete: false, arguments: {})
        perform("declare_exchange", name: name, kind: kind.to_s, durable: durable, auto_delete: auto_delete,
                                    exclusive: false, arguments: arguments)
      end

      # @return [String] the name, the broker's own where none was given
      # @raise [TransportError]
      def declare_queue(name, queue_type: nil, durable: true, auto_delete: false, exclusive: false, arguments: {})
        typed = queue_type.nil? || queue_type.to_s == "classic" ? {} : { "x-queue-type" => queue_type.to_s }
        perform("declare_queue", name: name, kind: "", durable: durable, auto_delete: auto_delete,
                                 exclusive: exclusive, arguments: typed.merge(arguments))
      end

      # @return [nil]
      # @raise [TransportError]
      def bind(queue:, exchange:, routing_key: "")
        perform("bind", queue: queue, exchange: exchange, routing_key: routing_key)
      end

      # @return [Integer] messages ready
      # @raise [TransportError]
      def message_count(queue)
        perform("count", name: queue)
      end

      # @return [Boolean]
      # @raise [TransportError]
      def queue_exists?(name)
        perform("queue_exists", name: name)
      end

      # @return [Integer] messages that went with it
      # @raise [TransportError]
      def delete_queue(name)
        perform("delete_queue", name: name)
      end

      # @param queue [String]
      # @return [Delivery, nil] not settled yet
      # @raise [TransportError]
      def pull(queue)
        letter = @client.pull(queue)
        letter && delivery(letter)
      end

      # @see Connection#inbox
      def inbox
        native = @client.inbox
        inbox = Inbox.new(native) { |letter| delivery(letter) }
        found = yield inbox
        native.close
        found
      ensure
        inbox&.close
        give_back(native)
      end

      # Hands the deliveries of a queue to a block, on threads of its own. The block settles each by {Delivery#ack} or
      # {Delivery#nack}, at once or later, from any thread.
      #
      # @param queue [String] must exist
      # @param prefetch [Integer] deliveries not yet settled at any time, 0 for no limit (up to 65535)
      # @param concurrency [Integer] threads
      # @param tag [String] what the broker calls the consumer, up to 255 bytes
      # @param arguments [Hash] of the consumer
      # @param in_order [Boolean] whether each thread takes its delivery once the one before has been handled, or has
      #   found its place in a handler of {Patterns.ordered}
      # @yieldparam delivery [Delivery]
      # @return [Subscription]
      # @raise [ArgumentError] for what the wire cannot carry
      # @raise [TransportError] when there is no such queue, or the broker refuses
      def subscribe(queue, prefetch:, concurrency:, tag:, arguments: {}, in_order: false, &block)
        raise ArgumentError, "subscribe needs a block that settles each delivery" unless block

        native = @client.subscribe(queue, prefetch: Consuming::Limits.prefetch!(prefetch), tag: tag, arguments: arguments)
        subscription = Subscription.new(native, queue: queue, tag: tag, concurrency: concurrency,
                                                in_order: in_order) { |letter| block.call(delivery(letter)) }
        remember(subscription)
        subscription
      end

      # Sends a delivery elsewhere as it is: the same body, properties and header types. Persistent, and without
      # a `user_id`, which the broker takes from its own connection only.
      #
      # @param delivery [Delivery] of this class, not settled
      # @param routing_key [String] the queue's name, where no exchange is given
      # @param exchange [String]
      # @param headers [Hash] to be set; those that are nil are taken away
      # @param message_id [String, nil] nil keeps the delivery's
      # @param keep_expiration [Boolean] whether the copy may expire as the original would have; where it waits or is set
      #   aside it would be thrown away
      # @param mandatory [Boolean] whether it is an error when no queue takes it
      # @return [String] the message id
      # @raise [PublishError] when it was not confirmed
      # @raise [TransportError] when the delivery is settled already
      def publish_copy(delivery, routing_key:, exchange: "", headers: {}, message_id: nil, keep_expiration: false, mandatory: true)
        id = message_id || delivery.message_id || Native.uuid_v7
        changes = { exchange: exchange, routing_key: routing_key, message_id: id, headers: headers, keep_expiration: keep_expiration,
                    mandatory: mandatory }
        ticket = Ticket.new(@client.copy(delivery.source, changes, pace(relay: false)),
                            [{ exchange: exchange, routing_key: routing_key }])
        ticket.wait_for_ever.first.tap { |failure| raise failure if failure }
        id
      end

      # @param error [Exception]
      # @return [Boolean] whether it is the connection's and not the message's
      def connection_error?(error)
        error.is_a?(TransportError) && error.scope == :connection
      end

      # Ends the subscriptions and both connections. A second call does nothing, and so does one in a forked child.
      #
      # @param timeout [Numeric, nil] seconds until it no longer waits for the broker's goodbye; 5 when nil
      # @return [nil]
      def close(timeout: nil)
        deadline = Deadline.in(timeout || 5)
        ending = @mutex.synchronize { @subscriptions.tap { @subscriptions = [] } }
        ending.each { |subscription| subscription.close(timeout: deadline.left) }
        @client.close(deadline.left.to_f)
      end

      # @return [String] without secrets
      def inspect
        "#<#{self.class} #{@location}#{" open" if open?}>"
      end

      private

      # One that is not open may be about to subscribe again.
      def remember(subscription)
        @mutex.synchronize do
          @subscriptions = @subscriptions.reject { |other| other.state.first == :stopped } << subscription
        end
      end

      def with_id(message)
        message[:message_id] ? message : message.merge(message_id: Native.uuid_v7)
      end

      def parts_of(message)
        exchange, key, body, type, id, headers, persistent, reply_to, mandatory = message.values_at(*PARTS)
        [exchange.to_s, key.to_s, body, type, id, headers, persistent != false, reply_to, mandatory ? true : false]
      end

      def pace(relay:, in_flight: 1, in_flight_bytes: DEFAULT_IN_FLIGHT_BYTES, confirm_timeout: self.confirm_timeout,
               send_by: nil)
        { in_flight: in_flight, in_flight_bytes: in_flight_bytes, confirm_timeout: confirm_timeout.to_f,
          send_by: send_by, relay: relay }
      end

      def give_back(native)
        native&.close
      rescue TransportError
        nil # what ended the block is more to the point
      end

      def perform(operation, **options)
        @client.perform(operation, options)
      end

      # Member by member, which takes a third of the time of keywords.
      def delivery(letter)
        delivery = Delivery.new
        delivery.body, type, delivery.routing_key, delivery.exchange, delivery.message_id,
          delivery.headers, delivery.redelivered, delivery.reply_to, parcel = letter
        delivery.content_type = type.to_s
        delivery.source = parcel
        delivery.on_ack = -> { parcel.settle(true, false) }
        delivery.on_nack = ->(requeue) { parcel.settle(false, requeue) }
        delivery
      end
    end
  end
end
