# frozen_string_literal: true

require "json"

module AceMQ
  module Testing
    # What a message is expected to be like, and whether one is.
    #
    # @api private
    class Pattern
      # @return [String, Regexp, nil] its routing key, or its type
      attr_reader :name
      attr_accessor :exchange, :payload, :headers

      # @param name [String, Regexp, nil] any when nil
      def initialize(name)
        @name = name
      end

      # @param message [AMQP::Patterns::OutboxRecord, FakeTransport::Published]
      # @return [Boolean]
      def match?(message)
        named?(message) && (exchange.nil? || like?(exchange, message.exchange.to_s)) &&
          (payload.nil? || like?(payload, decoded(message))) && (headers.nil? || like?(headers, message.headers))
      end

      # @return [String]
      def to_s
        [name ? name.inspect : "a message", ("to #{exchange.inspect}" if exchange), ("with #{payload.inspect}" if payload),
         ("with headers #{headers.inspect}" if headers)].compact.join(" ")
      end

      # @param message [AMQP::Patterns::OutboxRecord, FakeTransport::Published]
      # @return [String] for a list
      def self.describe(message)
        "#{message.routing_key.inspect} to #{message.exchange.to_s.inspect} with #{message.body.to_s[0, 200].inspect}"
      end

      private

      def named?(message)
        name.nil? || like?(name, message.routing_key.to_s) || like?(name, message.headers.to_h["x-acemq-type"].to_s)
      end

      # Hashes match when the message has at least these members, named by Symbols or Strings; anything else by `===`,
      # which a value, a class, a range, a Regexp and a matcher answer.
      def like?(expected, actual)
        case expected
        when Hash then actual.is_a?(Hash) && expected.all? { |key, value| actual.key?(key.to_s) && like?(value, actual[key.to_s]) }
        when Array then alike?(expected, actual)
        else expected === actual # rubocop:disable Style/CaseEquality
        end
      end

      def alike?(expected, actual)
        actual.is_a?(Array) && expected.size == actual.size && expected.zip(actual).all? { |one, other| like?(one, other) }
      end

      # @return [Object] the bytes where they are no JSON
      def decoded(message)
        JSON.parse(message.body)
      rescue JSON::ParserError
        message.body
      end
    end
  end
end
