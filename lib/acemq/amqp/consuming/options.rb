# frozen_string_literal: true

require "securerandom"
require_relative "../codec"
require_relative "../headers"
require_relative "../retry_policy"
require_relative "../short_string"

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
          @prefetch = whole(:prefetch, prefetch || connection.prefetch, 0)
          @concurrency = whole(:concurrency, concurrency, 1)
          @arguments = Headers.render(arguments)
          @retry_threshold = seconds(retry_threshold || connection.retry_threshold)
          @tag = tag ? given_tag(tag) : made_up_tag
        end

        # @return [Hash] for the transport
        def subscription
          { prefetch: prefetch, concurrency: concurrency, tag: tag, arguments: arguments }
        end

        private

        def named(queue)
          name = ShortString.check!(queue, "queue")
          raise ArgumentError, "the name of the queue is empty" if name.empty?

          name.dup.freeze
        end

        def policy(value)
          return value if value.is_a?(RetryPolicy)

          raise ArgumentError, "retry_policy of the consumer of #{queue} must be a RetryPolicy, not #{value.inspect}"
        end

        def whole(name, value, least)
          return value if value.is_a?(Integer) && value >= least

          raise ArgumentError, "#{name} of the consumer of #{queue} must be an Integer, #{least} or more, not #{value.inspect}"
        end

        def seconds(value)
          return value.to_f if value.is_a?(Numeric) && value.real? && value.to_f.finite? && !value.negative?

          raise ArgumentError, "retry_threshold of the consumer of #{queue} must be seconds, 0 or more, not #{value.inspect}"
        end

        def given_tag(tag)
          text = ShortString.check!(tag, "tag of the consumer of #{queue}")
          raise ArgumentError, "tag of the consumer of #{queue} is empty" if text.empty?

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
