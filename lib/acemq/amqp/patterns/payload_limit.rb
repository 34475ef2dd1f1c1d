# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # How large a message an outbox takes. A large one is mostly a mistake of design: it stands in the way of every
      # message behind it, and in the memory of every queue and consumer.
      #
      # @api private
      module PayloadLimit
        # Bytes.
        DEFAULT = 256 * 1024

        class << self
          # @param limit [Integer, nil] bytes; nil for none
          # @return [Integer, nil]
          # @raise [ArgumentError]
          def valid!(limit)
            return limit if limit.nil? || (limit.is_a?(Integer) && limit.positive?)

            raise ArgumentError, "max_payload: must be bytes, an Integer above 0, or nil for no limit, not #{limit.inspect}"
          end

          # @param record [OutboxRecord]
          # @param limit [Integer, nil] bytes
          # @raise [ArgumentError] naming the size and the limit
          def check!(record, limit)
            size = record.body.is_a?(String) ? record.body.bytesize : 0
            return if limit.nil? || size <= limit

            raise ArgumentError, "the body for #{record.routing_key.inspect} is #{size} bytes long, and this outbox takes " \
                                 "#{limit}: keep the data elsewhere and send where it is, or give the store a larger max_payload:"
          end
        end
      end
    end
  end
end
