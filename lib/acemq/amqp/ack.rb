# frozen_string_literal: true

module AceMQ
  module AMQP
    # A handler's answer. Frozen; two answers are equal when their action is.
    class Ack
      ACCEPT = :accept
      RETRY = :retry
      REJECT = :reject
      PARK = :park
      IN_PROGRESS = :in_progress

      # Seconds until a message that somebody else is handling comes back.
      DEFAULT_IN_PROGRESS_DELAY = 5.0

      # @return [Symbol] one of the constants
      attr_reader :action
      # @return [String, Exception, nil] why
      attr_reader :error
      # @return [Float, nil] seconds, of an answer "in progress"
      attr_reader :delay

      class << self
        # Done.
        # @return [Ack]
        def accept
          new(ACCEPT)
        end

        # To be tried again later, within the retry policy.
        # @param error [String, Exception, nil]
        # @return [Ack]
        def retry(error = nil)
          new(RETRY, error: error)
        end

        # Cannot succeed: to the dead-letter queue.
        # @param error [String, Exception, nil]
        # @return [Ack]
        def reject(error = nil)
          new(REJECT, error: error)
        end

        # Needs a person: to the parked queue.
        # @param reason [String, Exception, nil]
        # @return [Ack]
        def park(reason = nil)
          new(PARK, error: reason)
        end

        # Somebody is at it: to come back without using up an attempt.
        # @param delay [Numeric] seconds
        # @return [Ack]
        def in_progress(delay = DEFAULT_IN_PROGRESS_DELAY)
          unless delay.is_a?(Numeric) && delay.real? && delay.finite? && !delay.negative?
            raise ArgumentError, "delay must be seconds, 0 or more, not #{delay.inspect}"
          end

          new(IN_PROGRESS, delay: delay.to_f)
        end

        private :new
      end

      # @api private
      def initialize(action, error: nil, delay: nil)
        unless error.nil? || error.is_a?(String) || error.is_a?(Exception)
          raise ArgumentError, "the reason must be a String or an Exception, not #{error.class}"
        end

        @action = action
        @error = error
        @delay = delay
        freeze
      end

      # @return [Boolean]
      def accept?
        action == ACCEPT
      end

      # @return [Boolean]
      def retry?
        action == RETRY
      end

      # @return [Boolean]
      def reject?
        action == REJECT
      end

      # @return [Boolean]
      def park?
        action == PARK
      end

      # @return [Boolean]
      def in_progress?
        action == IN_PROGRESS
      end

      # @return [Boolean]
      def ==(other)
        other.is_a?(Ack) && action == other.action
      end
      alias eql? ==

      # @return [Integer]
      def hash
        action.hash
      end

      # @return [String]
      def to_s
        detail = delay ? "#{delay} s" : error
        detail ? "#{action} (#{detail})" : action.to_s
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{self}>"
      end
    end
  end
end
