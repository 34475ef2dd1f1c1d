# frozen_string_literal: true

require_relative "../accepted_keywords"
require_relative "../headers"

module AceMQ
  module AMQP
    module Patterns
      # A message of a replay on its way: everything as it was but for some headers.
      #
      # @api private
      class ReplayCopy
        FROM = "acemq-replayed-from"
        AT = "acemq-replayed-at"
        COUNT = "acemq-replay-count"

        # @param delivery [Delivery]
        # @param from [String] the queue it was in
        # @param restart [Boolean]
        # @return [ReplayCopy] that says where it has been
        def self.moved(delivery, from:, restart:)
          received = delivery.headers || {}
          afresh = restart ? { Headers::ATTEMPT => 1, Headers::ERROR => nil } : {}
          new(delivery, { FROM => from, AT => Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond),
                          COUNT => count(received[COUNT]) + 1, Headers::DEATHS => nil, **afresh })
        end

        # @param delivery [Delivery]
        # @param envelope [Envelope] its own
        # @return [ReplayCopy] to take its place in its queue: the routing key that it came by, the type of a message that
        #   names none, would be lost
        def self.renewed(delivery, envelope)
          new(delivery, { Headers::TYPE => envelope.type }, keep_expiration: true)
        end

        # Libraries differ in what they write.
        private_class_method def self.count(value)
          value = value.to_i if value.is_a?(String) && value.match?(/\A\d{1,9}\z/)
          value.is_a?(Integer) && value.between?(0, 2**31) ? value : 0
        end

        # @param delivery [Delivery]
        # @param changes [Hash] of its headers; nil takes one away
        # @param keep_expiration [Boolean] whether it may expire as the original would have
        def initialize(delivery, changes, keep_expiration: false)
          @delivery = delivery
          @received = (delivery.headers || {}).to_h.transform_keys(&:to_s)
          @changes = changes.merge(stale)
          @keep_expiration = keep_expiration
        end

        # @return [void] once it is confirmed
        # @raise [PublishError]
        def publish(transport, exchange:, routing_key:)
          if @delivery.source && transport.respond_to?(:publish_copy)
            transport.publish_copy(@delivery, exchange: exchange, routing_key: routing_key, headers: @changes,
                                              keep_expiration: @keep_expiration, mandatory: true)
          else
            AcceptedKeywords.call(transport, :publish, **parts(exchange, routing_key))
          end
        end

        private

        def stale
          Headers::STALE.select { |name| @received.key?(name) }.to_h { |name| [name, nil] }
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
