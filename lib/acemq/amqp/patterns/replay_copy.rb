# frozen_string_literal: true

require_relative "../accepted_keywords"
require_relative "../headers"

module AceMQ
  module AMQP
    module Patterns
      # A message of a replay on its way: everything as it was, and where it has been.
      #
      # @api private
      class ReplayCopy
        FROM = "acemq-replayed-from"
        AT = "acemq-replayed-at"
        COUNT = "acemq-replay-count"

        # @param delivery [Delivery]
        # @param from [String] the queue it was in
        # @param restart [Boolean]
        def initialize(delivery, from:, restart:)
          @delivery = delivery
          @received = (delivery.headers || {}).to_h.transform_keys(&:to_s)
          @changes = { FROM => from, AT => Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond),
                       COUNT => count + 1, **(restart ? afresh : {}), **stale }
        end

        # @return [void] once it is confirmed
        # @raise [PublishError]
        def publish(transport, exchange:, routing_key:)
          if @delivery.source && transport.respond_to?(:publish_copy)
            transport.publish_copy(@delivery, exchange: exchange, routing_key: routing_key, headers: @changes, mandatory: true)
          else
            AcceptedKeywords.call(transport, :publish, **parts(exchange, routing_key))
          end
        end

        private

        def afresh
          { Headers::ATTEMPT => 1, Headers::ERROR => nil }
        end

        # The broker would send further copies to these queues.
        def stale
          Headers::COPIES.select { |name| @received.key?(name) }.to_h { |name| [name, nil] }
        end

        # Libraries differ in what they write.
        def count
          value = @received[COUNT]
          value = value.to_i if value.is_a?(String) && value.match?(/\A\d{1,9}\z/)
          value.is_a?(Integer) && value.between?(0, 2**31) ? value : 0
        end

        def parts(exchange, routing_key)
          removed, added = @changes.partition { |_, value| value.nil? }.map(&:to_h)
          { exchange: exchange, routing_key: routing_key, body: @delivery.body, content_type: @delivery.content_type,
            message_id: @delivery.message_id, headers: @received.except(*removed.keys).merge(added), persistent: true,
            reply_to: @delivery.reply_to, mandatory: true }
        end
      end
    end
  end
end
