# frozen_string_literal: true

require_relative "../amqp/errors"

module AceMQ
  module Testing
    # What a broker does to messages when it does not take them, scripted.
    #
    # | kind | what becomes of a message |
    # |---|---|
    # | `:nack` | declined: a full queue, say. Its destination waits |
    # | `:return` | no queue is bound for it; returned if it is mandatory, else gone. Its destination waits |
    # | `:refuse` | will never be taken (too large, a bad property): the record is retired |
    # | `:close` | the connection breaks, before anybody knows whether it was taken. The next publish finds a new one |
    # | `:timeout` | no confirm comes |
    # | `:block` | the broker takes nothing at present |
    # | `:delay` | taken, after `seconds` |
    #
    # @example the second order is declined once
    #   transport.fault(:nack, routing_key: "order.placed", after: 1, times: 1)
    module Faults
      KINDS = %i[nack return refuse close timeout block delay].freeze

      # One line of a script.
      #
      # @api private
      Fault = Struct.new(:kind, :exchange, :routing_key, :times, :after, :seconds, :reason, keyword_init: true) do
        # @return [Boolean] whether it strikes this message, of those that it is about
        def strike?(message)
          return false unless [nil, message.exchange].include?(exchange) && routing_key_matches?(message.routing_key)

          self.after -= 1
          return false unless after.negative? && times != 0

          self.times -= 1 if times
          true
        end

        private

        def routing_key_matches?(key)
          routing_key.nil? || routing_key === key # rubocop:disable Style/CaseEquality -- a Regexp, or the name
        end
      end

      # From now on messages fare so.
      #
      # @param kind [Symbol] one of {KINDS}
      # @param exchange [String, nil] only those of this exchange
      # @param routing_key [String, Regexp, nil] only those of this routing key
      # @param times [Integer, nil] so often; until {#heal} when nil
      # @param after [Integer] not before so many of them have passed
      # @param seconds [Numeric] of a `:delay`
      # @param reason [String, nil] in the error's text
      # @return [self]
      # @raise [ArgumentError] for a kind that does not exist
      def fault(kind, exchange: nil, routing_key: nil, times: nil, after: 0, seconds: 0, reason: nil)
        raise ArgumentError, "there is no fault #{kind.inspect}; there are #{KINDS.join(", ")}" unless KINDS.include?(kind)

        @mutex.synchronize do
          faults << Fault.new(kind: kind, exchange: exchange, routing_key: routing_key, times: times, after: after,
                              seconds: seconds, reason: reason)
        end
        self
      end

      # Everything works again.
      #
      # @return [self]
      def heal
        @mutex.synchronize { faults.clear }
        self.blocked_reason = nil
        self
      end

      private

      def faults
        @faults ||= []
      end

      # @return [Symbol, nil] `:lost` for a message that goes nowhere without a word
      # @raise [AceMQ::AMQP::PublishError]
      def suffer(message)
        struck = @mutex.synchronize { faults.find { |fault| fault.strike?(message) } } or return
        case struck.kind
        when :delay then sleep(struck.seconds) && nil
        when :return then message.mandatory ? raise(failure(struck, message)) : :lost
        else
          @open = false if struck.kind == :close
          raise failure(struck, message)
        end
      end

      # What each is in words, unless the script has better ones, and what it is to whoever asks the error.
      ERRORS = {
        nack: ["the broker declined it", { nacked: true, scope: :destination }],
        return: ["no queue is bound for it", { unroutable: true, scope: :destination }],
        refuse: ["the broker will never take it", { permanent: true, scope: :record }],
        close: ["the connection was lost", { scope: :connection, unknown: true }]
      }.freeze
      private_constant :ERRORS

      def failure(fault, message)
        place = { exchange: message.exchange, routing_key: message.routing_key }
        case fault.kind
        when :timeout then AMQP::ConfirmTimeout.new(fault.reason || "no confirm came", **place)
        when :block then AMQP::PublishingPausedError.new("the broker takes nothing at present: #{fault.reason || "memory"}", **place)
        else
          text, what = ERRORS.fetch(fault.kind)
          AMQP::PublishError.new(fault.reason || text, **what, **place)
        end
      end
    end
  end
end
