# frozen_string_literal: true

require_relative "accepted_keywords"
require_relative "codec"
require_relative "composed"
require_relative "deadline"
require_relative "declarations"
require_relative "errors"
require_relative "json_codec"
require_relative "origin"
require_relative "retry_policy"
require_relative "unconfirmed"

module AceMQ
  module AMQP
    # What an application publishes through: a codec and an origin on top of a
    # transport. Safe to share between threads, and to use after a fork.
    class Connection
      include Declarations

      # Messages that a consumer is handed ahead.
      DEFAULT_PREFETCH = 20
      # Seconds that {#close} waits for what is under way.
      DRAIN_TIMEOUT = 20
      # Seconds from which on a retry waits in the broker instead of the consumer.
      DEFAULT_RETRY_THRESHOLD = 30.0

      # The keywords of {.new}; all others of {.open} are the transport's.
      OPTIONS = %i[codec origin retry_policy prefetch retry_threshold].freeze

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
      # @param prefetch [Integer] messages
      # @param retry_threshold [Numeric] seconds
      # @raise [ArgumentError] for a transport without `publish`, or a codec that is none
      def initialize(transport:, codec: nil, origin: nil, retry_policy: RetryPolicy.none, prefetch: DEFAULT_PREFETCH,
                     retry_threshold: DEFAULT_RETRY_THRESHOLD, **unknown)
        refuse_unknown(unknown)
        raise ArgumentError, "#{transport.class} is no transport: it has no publish" unless transport.respond_to?(:publish)

        @transport = transport
        @codec = Codec.check!(codec || JSONCodec.new)
        @origin = origin.to_s.empty? ? Origin.default : origin.to_s.dup.freeze
        @retry_policy = checked(:retry_policy, retry_policy, RetryPolicy)
        @prefetch = checked(:prefetch, prefetch, Integer)
        @retry_threshold = checked(:retry_threshold, retry_threshold, Numeric).to_f
        @relays = []
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
        composed = compose(payload, to, exchange, codec, envelope, fields)
        send_message(message(composed, persistent, reply_to, mandatory))
        composed.envelope
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
        composed = compose_all(payloads, envelopes, fields) do |payload, envelope|
          compose(payload, to, exchange, codec, envelope, fields)
        end
        failure = Unconfirmed.error(send_all(composed.map { |one| message(one, persistent, reply_to, mandatory) }))
        raise failure if failure

        composed.map(&:envelope)
      end

      # Takes one message off a queue. It is not settled until {Delivery#ack} or {Delivery#nack}.
      #
      # @param queue [String]
      # @return [Delivery, nil] nil when the queue is empty
      # @raise [TransportError]
      def pull(queue)
        ask(:pull, ShortString.check!(queue, "queue"))
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

      # Closes the relays that publish through it, then the transport. A second
      # call does nothing.
      #
      # @param timeout [Numeric] seconds for all of it together
      # @return [nil]
      # @raise the first failure, after everything has been closed
      def close(timeout: DRAIN_TIMEOUT)
        deadline = Deadline.in(timeout)
        closing = @mutex.synchronize { @relays.tap { @relays = [] } }
        failures = (closing + [transport]).filter_map { |part| failure_of_closing(part, deadline) }
        raise failures.first if failures.any?
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

      def checked(name, value, kind)
        value.is_a?(kind) ? value : raise(ArgumentError, "#{name} must be a #{kind.name}, not #{value.inspect}")
      end

      # rubocop:disable Metrics/ParameterLists -- handed on as they came
      def compose(payload, to, exchange, codec, envelope, fields)
        Composed.of(payload, to: to, exchange: exchange, codec: codec ? Codec.check!(codec) : self.codec,
                             origin: origin, envelope: envelope, fields: fields)
      end
      # rubocop:enable Metrics/ParameterLists

      def compose_all(payloads, envelopes, fields)
        raise ArgumentError, "payloads must be an Array, not #{payloads.class}" unless payloads.is_a?(Array)
        raise ArgumentError, "give either envelopes: or fields (#{fields.keys.join(", ")})" if envelopes && fields.any?
        if envelopes && envelopes.size != payloads.size
          raise ArgumentError, "#{payloads.size} payloads and #{envelopes.size} envelopes"
        end

        payloads.each_with_index.map { |payload, index| yield payload, envelopes&.at(index) }
      end

      def message(composed, persistent, reply_to, mandatory)
        { exchange: composed.exchange, routing_key: composed.routing_key, body: composed.body,
          content_type: composed.content_type, message_id: composed.envelope.id, headers: composed.headers,
          persistent: persistent ? true : false, reply_to: reply_address(reply_to), mandatory: mandatory ? true : false }
      end

      # A blank address would be sent, and answered to nowhere.
      def reply_address(reply_to)
        address = ShortString.check!(reply_to, "reply_to")
        address unless address.empty?
      end

      def send_message(message)
        AcceptedKeywords.call(transport, :publish, **message)
      end

      def send_all(messages)
        return [] if messages.empty?
        return transport.publish_all(messages) if transport.respond_to?(:publish_all)

        messages.map do |message|
          send_message(message)
        rescue TransportError => e
          e
        end
      end

      def ask(name, *arguments, **keywords)
        return AcceptedKeywords.call(transport, name, *arguments, **keywords) if transport.respond_to?(name)

        raise ConfigurationError, "#{transport.class} has no #{name}, which this needs"
      end

      def failure_of_closing(part, deadline)
        AcceptedKeywords.call(part, :close, timeout: deadline.left) if part.respond_to?(:close)
        nil
      rescue StandardError => e
        e
      end
    end
  end
end
