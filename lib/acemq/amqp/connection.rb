# frozen_string_literal: true

require_relative "accepted_keywords"
require_relative "codec"
require_relative "consumers"
require_relative "consuming/drain"
require_relative "consuming/limits"
require_relative "declarations"
require_relative "errors"
require_relative "health"
require_relative "interceptors"
require_relative "json_codec"
require_relative "origin"
require_relative "posting"
require_relative "probe_queue"
require_relative "retry_policy"
require_relative "telemetry"

module AceMQ
  module AMQP
    # What an application publishes and consumes through: a codec and an origin on
    # top of a transport. Safe to share between threads, and to use after a fork.
    class Connection
      include Declarations
      include Consumers

      # Messages that a consumer is handed ahead.
      DEFAULT_PREFETCH = 20
      # Seconds that {#close} waits for what is under way.
      DRAIN_TIMEOUT = 20
      # Seconds from which on a retry waits in the broker instead of the consumer.
      DEFAULT_RETRY_THRESHOLD = 30.0

      # The keywords of {.new}; all others of {.open} are the transport's.
      OPTIONS = %i[codec origin retry_policy prefetch retry_threshold telemetry].freeze

      # @return [Object] what carries the messages
      attr_reader :transport
      # @return [Object] what encodes payloads unless a call says otherwise
      attr_reader :codec
      # @return [String] written into every envelope that has no origin
      attr_reader :origin
      # @return [RetryPolicy] of consumers that have none of their own
      attr_reader :retry_policy
      # @return [Integer] messages
      attr_reader :prefetch
      # @return [Float] seconds
      attr_reader :retry_threshold
      # @return [Object] what observes, see {Telemetry}
      attr_reader :telemetry
      # @return [Interceptors]
      attr_reader :interceptors
      # @return [Telemetry::Guarded]
      # @api private
      attr_reader :meter
      # @return [ProbeQueue]
      # @api private
      attr_reader :probe_queue

      class << self
        # Dials the broker.
        #
        # @param url [String] "amqp://user:password@host:5672/vhost", or amqps
        # @param options [Hash] those of {#initialize} but `transport:`, and those of {Transport.open}
        # @return [Connection]
        # @raise [ConfigurationError, ArgumentError] for settings that cannot be right
        # @raise [TransportError] when no broker answers, with the URL but not its password
        def open(url, **options)
          lazy(url, **options).connect
        end

        # Like {.open}, but dials only when something is to be sent or asked.
        #
        # @param url [String]
        # @param options [Hash] see {.open}
        # @return [Connection]
        # @raise [ConfigurationError, ArgumentError]
        def lazy(url, **options)
          known!(options)
          own, transport_options = options.partition { |name, _| OPTIONS.include?(name) }.map(&:to_h)
          new(transport: Transport.new(url, **transport_options), **own)
        end

        # @return [String] the origin of a connection that is given none
        def default_origin
          Origin.default
        end

        private

        def known!(options)
          known = OPTIONS + TransportOptions::DEFAULTS.keys
          unknown = options.keys - known
          return if unknown.empty?

          raise ArgumentError, "unknown keyword #{unknown.join(", ")}; a connection takes #{known.join(", ")}"
        end
      end

      # @param transport [Object] anything with the family's `publish`; see {AceMQ::Testing::FakeTransport}
      # @param codec [Object, nil] JSON when nil
      # @param origin [String, nil] {.default_origin} when nil or empty
      # @param retry_policy [RetryPolicy]
      # @param prefetch [Integer] messages, up to 65535; 0 is no limit
      # @param retry_threshold [Numeric] seconds
      # @param telemetry [Object, nil] an observer, see {Telemetry}
      # @raise [ArgumentError] for a transport without `publish`, a codec that is none, or a figure that cannot be right
      def initialize(transport:, codec: nil, origin: nil, retry_policy: RetryPolicy.none, prefetch: DEFAULT_PREFETCH,
                     retry_threshold: DEFAULT_RETRY_THRESHOLD, telemetry: nil, **unknown)
        refuse_unknown(unknown)
        raise ArgumentError, "#{transport.class} is no transport: it has no publish" unless transport.respond_to?(:publish)

        @transport = transport
        @codec = Codec.check!(codec || JSONCodec.new)
        @origin = origin.to_s.empty? ? Origin.default : origin.to_s.dup.freeze
        @retry_policy = policy(retry_policy)
        @prefetch = Consuming::Limits.prefetch!(prefetch)
        @retry_threshold = Consuming::Limits.retry_threshold!(retry_threshold)
        @telemetry = telemetry || Telemetry::None.new
        @meter = Telemetry::Guarded.new(telemetry)
        @interceptors = Interceptors.new
        @probe_queue = ProbeQueue.new(self)
        @relays = []
        @consumers = []
        @mutex = Mutex.new
      end

      # Sends one message and waits until the broker has confirmed it.
      #
      # @param payload [Object] what the codec encodes
      # @param to [String] the routing key; on the default exchange the name of a queue
      # @param exchange [String] "" is the default exchange
      # @param envelope [Envelope, nil] instead of fields
      # @param codec [Object, nil] instead of the connection's
      # @param persistent [Boolean] whether it outlives a restart of the broker
      # @param reply_to [String, nil]
      # @param mandatory [Boolean] whether it is an error when no queue is bound for it
      # @param fields [Hash] of the envelope, see {Envelope#initialize}
      # @return [Envelope] as it was sent
      # @raise [PublishError] when it was not confirmed; ask it why
      # @raise [EncodeError, ArgumentError] before anything is written
      def publish(payload, to:, exchange: "", envelope: nil, codec: nil, persistent: true, reply_to: nil,
                  mandatory: false, **fields)
        posting = Posting.new(self, codec: codec, persistent: persistent)
        posting.add(payload, to: to, exchange: exchange, envelope: envelope, reply_to: reply_to, mandatory: mandatory, fields: fields)
        posting.send_one
      end

      # Sends many messages and waits for all of them. Not atomic: those that were
      # confirmed stay sent.
      #
      # @param payloads [Array<Object>]
      # @param to [String] the routing key of all
      # @param envelopes [Array<Envelope>, nil] one per payload, instead of fields
      # @param fields [Hash] of every envelope
      # @return [Array<Envelope>] in the order of the payloads
      # @raise [PublishError] one for all that failed
      # @raise [EncodeError, ArgumentError] before anything is written
      # @see #publish
      def publish_all(payloads, to:, exchange: "", envelopes: nil, codec: nil, persistent: true, reply_to: nil,
                      mandatory: false, **fields)
        posting = Posting.new(self, codec: codec, persistent: persistent)
        each_payload(payloads, envelopes, fields) do |payload, given|
          posting.add(payload, to: to, exchange: exchange, envelope: given, reply_to: reply_to, mandatory: mandatory, fields: fields)
        end
        posting.send_all
      end

      # Takes one message off a queue. It is not settled until {Delivery#ack} or {Delivery#nack}.
      #
      # @param queue [String]
      # @return [Delivery, nil] nil when the queue is empty
      # @raise [TransportError]
      def pull(queue)
        ask(:pull, ShortString.check!(queue, "queue"))
      end

      # For looking through a queue: what the block has pulled and not settled when it ends goes back, all at once. Nacked
      # one by one, a classic queue looks for the place of each, and 10,000 keep it from everything else for a minute.
      # A classic queue has them in their order again, a quorum queue in any, and counts each against its delivery limit.
      #
      # @yieldparam inbox [Inbox] pulls by a channel of its own
      # @return [Object] what the block returns
      # @raise [TransportError] at the end too, when the broker may not have heard all that was settled
      # @example the last of the dead letters
      #   connection.inbox do |inbox|
      #     found = nil
      #     while (delivery = inbox.pull("orders.dlq"))
      #       found = delivery.body
      #     end
      #     found
      #   end
      def inbox(&block)
        ask(:inbox, &block)
      end

      # Dials now, where the transport would wait until it is needed.
      #
      # @return [self]
      # @raise [TransportError]
      def connect
        transport.connect if transport.respond_to?(:connect)
        self
      end

      # @return [Boolean] whether the transport has a live link; never dials
      def open?
        transport.respond_to?(:open?) ? transport.open? : true
      end

      # @return [String, nil] why the broker takes nothing at present
      def blocked_reason
        transport.blocked_reason if transport.respond_to?(:blocked_reason)
      end

      # @return [Boolean]
      def blocked?
        !blocked_reason.nil?
      end

      # Takes in what has to be closed before the connection is.
      #
      # @param relay [#close]
      # @return [self]
      # @api private
      def register(relay)
        @mutex.synchronize { @relays |= [relay] }
        self
      end

      # @return [self]
      # @api private
      def unregister(relay)
        @mutex.synchronize { @relays -= [relay] }
        self
      end

      # Stops the consumers and lets their handlers end, closes the relays that publish
      # through it, then the transport. A second call does nothing.
      #
      # @param timeout [Numeric] seconds for all of it together; 0 waits for nothing
      # @return [nil]
      # @raise the first failure, after everything has been closed
      # @raise [DrainTimeout] when handlers had not ended
      def close(timeout: DRAIN_TIMEOUT)
        drain = Consuming::Drain.new(timeout)
        failures = drain.stop(taken_consumers)
        # Handlers end by themselves meanwhile, and relays need time for their confirms.
        failures += close_all(taken_relays, drain.deadline) + drain.finish + close_all([transport], drain.deadline)
        raise failures.first if failures.any?

        drain.check!
      end

      # @return [String] without addresses and secrets
      def inspect
        "#<#{self.class} transport=#{transport.class} origin=#{origin.inspect} codec=#{codec.class}>"
      end

      private

      def refuse_unknown(keywords)
        return if keywords.empty?

        raise ArgumentError, "unknown keyword #{keywords.keys.join(", ")}; a connection on a transport of its own " \
                             "takes #{OPTIONS.join(", ")}"
      end

      def policy(value)
        value.is_a?(RetryPolicy) ? value : raise(ArgumentError, "retry_policy must be a RetryPolicy, not #{value.inspect}")
      end

      def each_payload(payloads, envelopes, fields)
        raise ArgumentError, "payloads must be an Array, not #{payloads.class}" unless payloads.is_a?(Array)
        raise ArgumentError, "give either envelopes: or fields (#{fields.keys.join(", ")})" if envelopes && fields.any?
        if envelopes && envelopes.size != payloads.size
          raise ArgumentError, "#{payloads.size} payloads and #{envelopes.size} envelopes"
        end

        payloads.each_with_index { |payload, index| yield payload, envelopes&.at(index) }
      end

      def ask(name, *arguments, **keywords, &block)
        return AcceptedKeywords.call(transport, name, *arguments, **keywords, &block) if transport.respond_to?(name)

        raise ConfigurationError, "#{transport.class} has no #{name}, which this needs"
      end

      def taken_consumers
        @mutex.synchronize { @consumers.tap { @consumers = [] } }
      end

      def taken_relays
        @mutex.synchronize { @relays.tap { @relays = [] } }
      end

      def close_all(parts, deadline)
        parts.filter_map do |part|
          AcceptedKeywords.call(part, :close, timeout: deadline.left) if part.respond_to?(:close)
          nil
        rescue StandardError => e
          e
        end
      end
    end
  end
end
