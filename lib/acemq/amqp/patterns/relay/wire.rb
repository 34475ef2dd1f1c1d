# frozen_string_literal: true

require "json"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # A record as the keywords of a transport's `publish`.
        class Wire
          # @param mandatory [Mandatory]
          def initialize(mandatory)
            @mandatory = mandatory
          end

          # @param record [OutboxRecord]
          # @return [Hash{Symbol => Object}]
          def message(record)
            { exchange: record.exchange.to_s, routing_key: record.routing_key.to_s, body: record.body,
              content_type: record.content_type, message_id: record.id, headers: record.headers || {},
              persistent: true, mandatory: @mandatory.for?(record) }
          end

          # The same for a transport that knows nothing of headers kept as JSON text.
          def plain_message(record)
            message = message(record)
            message[:headers] = JSON.parse(message[:headers]) if message[:headers].is_a?(String)
            message
          end
        end
      end
    end
  end
end
