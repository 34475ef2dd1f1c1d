# frozen_string_literal: true

require_relative "errors"

module AceMQ
  module AMQP
    # A batch that was handed over and is under way.
    #
    # @api private
    class Ticket
      # Outcomes for which nothing was written: sending again is always safe.
      PAUSED = %i[blocked unsent connect].freeze
      # Seconds; longer than any wait that ends by itself.
      SLICE = 3600.0

      class << self
        # @param facts [Array] what the extension knows of a failure
        # @param message [Hash] that it is about
        # @return [PublishError]
        def error(facts, message)
          kind, scope, unknown, code, text = facts
          place = { exchange: message[:exchange].to_s, routing_key: message[:routing_key].to_s }
          return PublishingPausedError.new(text, **place) if PAUSED.include?(kind)
          return ConfirmTimeout.new(text, scope: scope, **place) if kind == :unconfirmed

          PublishError.new(text, unroutable: kind == :returned, nacked: kind == :nacked, scope: scope,
                                 permanent: kind == :refused, unknown: unknown, reply_code: code, **place)
        end
      end

      def initialize(native, messages)
        @native = native
        @messages = messages
      end

      # Waits with the GVL released; Timeout, Thread#kill and signals end it at once.
      #
      # @param seconds [Numeric]
      # @return [Array<nil, PublishError>, nil] nil while it is under way; else for each message, in order, nil when
      #   it was confirmed (acked and not returned), or why not
      def wait(seconds)
        outcomes = @native.wait(seconds.to_f)
        outcomes&.each_with_index&.map { |facts, index| facts && Ticket.error(facts, @messages[index]) }
      end

      # @return [Array<nil, PublishError>]
      def wait_for_ever
        outcomes = wait(SLICE) until outcomes
        outcomes
      ensure
        # Whatever ended the wait (an exception, a kill, or the throw that Timeout is made of), nobody needs the rest.
        cancel unless outcomes
      end

      # Says that the leases of its records were renewed.
      #
      # @param seconds [Numeric] from now, after which nothing more of it is written
      # @return [nil]
      def send_by(seconds)
        @native.send_by(seconds.to_f)
      end

      # Has nothing more written, and the connection dropped if something is out. The next {#wait} ends promptly.
      #
      # @return [nil]
      def cancel
        @native.cancel
      end
    end
  end
end
