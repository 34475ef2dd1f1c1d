# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Whether a message that reaches no queue is a failure. It is, unless the application says that nobody
        # need consume the events of an exchange.
        class Mandatory
          # @param rule [Boolean, #call, Enumerable<String>] a callable takes exchange and routing key and answers
          #   whether the message must reach a queue; a list names exchanges whose messages need not
          # @raise [ArgumentError] for anything else
          def initialize(rule)
            @rule = rule.is_a?(Enumerable) ? rule.map(&:to_s).freeze : rule
            return if [true, false].include?(@rule) || @rule.is_a?(Array) || @rule.respond_to?(:call)

            raise ArgumentError, "mandatory: must be true, false, a callable of exchange and routing key, or a list " \
                                 "of exchanges that need no consumer, not #{rule.inspect}"
          end

          # @param record [OutboxRecord]
          # @return [Boolean]
          def for?(record)
            case @rule
            when true, false then @rule
            when Array then !@rule.include?(record.exchange.to_s)
            else @rule.call(record.exchange.to_s, record.routing_key.to_s) ? true : false
            end
          end
        end
      end
    end
  end
end
