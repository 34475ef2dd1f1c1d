# frozen_string_literal: true

require "securerandom"
require_relative "../codec"
require_relative "../headers"
require_relative "../retry_policy"
require_relative "../short_string"
require_relative "limits"

module AceMQ
  module AMQP
    module Consuming
      # The keywords of {Consumers#consume}, checked; what is nil is the connection's.
      #
      # @api private
      class Options
        TAG_BYTES = 8 # of randomness

        # @return [String]
        attr_reader :queue, :tag
        # @return [Object]
        attr_reader :codec
        # @return [RetryPolicy]
        attr_reader :retry_policy
        # @return [Integer]
        attr_reader :prefetch, :concurrency
        # @return [Hash{String => Object}]
        attr_reader :arguments
        # @return [Float] seconds
        attr_reader :retry_threshold

        def initialize(connection, queue, codec:, retry_policy:, prefetch:, concurrency:, tag:, arguments:, retry_threshold:)
          @queue = named(queue)
          @codec = codec ? Codec.check!(codec) : connection.codec
          @retry_policy = policy(retry_policy || connection.retry_policy)
          @prefetch = Limits.prefetch!(prefetch || connection.prefetch, whose)
          @concurrency = threads(concurrency)
          @arguments = Headers.render(arguments)
          @retry_threshold = Limits.retry_threshold!(retry_threshold || connection.retry_threshold, whose)
          @tag = tag ? given_tag(tag) : made_up_tag
        end

        # @return [Hash] for the transport
        def subscription
          { prefetch: prefetch, concurrency: concurrency, tag: tag, arguments: arguments }
        end

        private

        def whose
          " of the consumer of #{queue}"
        end

        def named(queue)
          name = ShortString.check!(queue, "queue")
          raise ArgumentError, "the name of the queue is empty" if name.empty?

          name.dup.freeze
        end

        def policy(value)
          return value if value.is_a?(RetryPolicy)

          raise ArgumentError, "retry_policy#{whose} must be a RetryPolicy, not #{value.inspect}"
        end

        def threads(concurrency)
          return concurrency if concurrency.is_a?(Integer) && concurrency.positive?

          raise ArgumentError, "concurrency#{whose} must be an Integer, 1 or more, not #{concurrency.inspect}"
        end

        def given_tag(tag)
          text = ShortString.check!(tag, "tag#{whose}")
          raise ArgumentError, "tag#{whose} is empty" if text.empty?

          text
        end

        # A queue's name may be as long as a tag; cut between characters, it still says whose tag it is.
        def made_up_tag
          random = SecureRandom.hex(TAG_BYTES)
          room = ShortString::MAX_BYTES - "acemq--".bytesize - random.bytesize
          "acemq-#{queue.byteslice(0, room).scrub("")}-#{random}"
        end
      end
    end
  end
end
