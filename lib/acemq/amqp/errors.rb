# frozen_string_literal: true

module AceMQ
  # The error tree. Errors answer questions (`scope`, `permanent?`, `unknown?`);
  # nothing in the library, and nothing in an application, needs to match texts.
  module AMQP
    # Trying again cannot help: the message itself is at fault.
    class FatalError < StandardError; end

    # A body that its codec cannot read.
    class DecodeError < FatalError; end

    # A payload or a header that its codec cannot write.
    class EncodeError < FatalError; end

    # Something optional is asked for whose library is not installed.
    class DependencyMissing < StandardError; end

    # A setting that cannot be right, found while building or booting.
    class ConfigurationError < StandardError; end

    # Exchanges, queues and bindings that do not fit together.
    class TopologyError < StandardError; end

    # A queue type that is unknown, or that its other properties rule out.
    class QueueTypeError < StandardError; end

    # The way to the broker failed: no connection, a lost one, a refused operation.
    class TransportError < StandardError
      # What the failure is about, and so what has to wait for it to be mended.
      #
      # @return [:record, :destination, :connection]
      def scope
        :connection
      end

      # @return [Boolean] whether sending the same thing again cannot help
      def permanent?
        false
      end

      # @return [Boolean] whether the message may have reached a queue all the same
      def unknown?
        false
      end
    end

    # One message that was not confirmed.
    class PublishError < TransportError
      # @return [:record, :destination, :connection] what is at fault
      attr_reader :scope
      # @return [String, nil] the exchange published to ("" is the default exchange)
      attr_reader :exchange
      # @return [String, nil]
      attr_reader :routing_key
      # @return [Integer, nil] the AMQP reply code, where the broker gave one
      attr_reader :reply_code

      # @param message [String, nil]
      # @param unroutable [Boolean] the broker returned it: no queue is bound for it
      # @param scope [Symbol] `:record`, `:destination` or `:connection`
      # @param permanent [Boolean] sending it again cannot help
      # @param unknown [Boolean] it may have reached a queue
      # @param nacked [Boolean] the broker (or a full queue) declined it
      # @param exchange [String, nil]
      # @param routing_key [String, nil]
      # @param reply_code [Integer, nil]
      def initialize(message = nil, unroutable: false, scope: :record, permanent: false, unknown: false,
                     nacked: false, exchange: nil, routing_key: nil, reply_code: nil)
        super(message)
        @unroutable = unroutable
        @scope = scope
        @permanent = permanent
        @unknown = unknown
        @nacked = nacked
        @exchange = exchange
        @routing_key = routing_key
        @reply_code = reply_code
      end

      # @return [Boolean] whether the broker returned it because no queue is bound for it
      def unroutable?
        @unroutable
      end

      # @return [Boolean] whether the broker declined it
      def nacked?
        @nacked
      end

      def permanent?
        @permanent
      end

      def unknown?
        @unknown
      end
    end

    # Declined before anything was written, because the broker has blocked the
    # connection: sending again later is always safe.
    class PublishingPausedError < PublishError
      # @param message [String, nil]
      def initialize(message = nil, exchange: nil, routing_key: nil)
        super(message, scope: :connection, exchange: exchange, routing_key: routing_key)
      end
    end

    # Consumers whose handlers had not ended when the time for closing was over. They run on; what they answer is not
    # settled any more, and their messages are handed out again.
    class DrainTimeout < StandardError
      # @return [Hash{String => Integer}] handlers by queue
      attr_reader :stranded
      # @return [Numeric, nil] seconds
      attr_reader :timeout

      # @param message [String, nil]
      # @param stranded [Hash{String => Integer}]
      # @param timeout [Numeric, nil] seconds
      def initialize(message = nil, stranded: {}, timeout: nil)
        @stranded = stranded
        @timeout = timeout
        super(message || "handlers had not ended after #{timeout} s: " \
                         "#{stranded.map { |queue, count| "#{count} of #{queue}" }.join(", ")}; their messages go back to " \
                         "their queues")
      end
    end

    # Written, and neither confirmed nor refused in time: it may be in a queue.
    class ConfirmTimeout < PublishError
      # @param message [String, nil]
      # @param scope [Symbol] `:connection` unless others on the link were confirmed meanwhile
      def initialize(message = nil, scope: :connection, exchange: nil, routing_key: nil)
        super(message, scope: scope, unknown: true, exchange: exchange, routing_key: routing_key)
      end
    end
  end
end
