# frozen_string_literal: true

module AceMQ
  module AMQP
    # How often a message is tried, and how long apart. Frozen; all times in seconds.
    class RetryPolicy
      # Between retries of an exponential policy, so that a fleet does not come back in step.
      DEFAULT_JITTER = 0.2

      # @return [Integer] attempts in all, the first included
      attr_reader :max_attempts
      # @return [Float]
      attr_reader :initial_delay, :multiplier, :max_delay, :jitter_factor, :max_message_age

      class << self
        # @return [RetryPolicy] one attempt
        def none
          new
        end

        # @param max_attempts [Integer]
        # @param initial [Numeric] seconds before the second attempt, doubled each time
        # @param max [Numeric] seconds at most, 0 for no limit
        # @return [RetryPolicy]
        def exponential(max_attempts, initial, max = 0.0)
          new(max_attempts: max_attempts, initial_delay: initial, max_delay: max, jitter_factor: DEFAULT_JITTER)
        end

        # @param max_attempts [Integer]
        # @param delay [Numeric] seconds between attempts
        # @return [RetryPolicy]
        def fixed(max_attempts, delay)
          new(max_attempts: max_attempts, initial_delay: delay, multiplier: 1.0)
        end
      end

      # @param max_attempts [Integer] attempts in all
      # @param initial_delay [Numeric] seconds before the second
      # @param multiplier [Numeric] of the delay, from one attempt to the next
      # @param max_delay [Numeric] seconds, 0 for no limit
      # @param jitter_factor [Numeric] 0.2 spreads a delay over 0.8 to 1.2 of itself
      # @param max_message_age [Numeric] seconds after which nothing is tried again, 0 for no limit
      # @raise [ArgumentError]
      def initialize(max_attempts: 1, initial_delay: 0.0, multiplier: 2.0, max_delay: 0.0, jitter_factor: 0.0,
                     max_message_age: 0.0)
        @max_attempts = attempts(max_attempts)
        @initial_delay = number(:initial_delay, initial_delay)
        @multiplier = number(:multiplier, multiplier)
        @max_delay = number(:max_delay, max_delay)
        @jitter_factor = number(:jitter_factor, jitter_factor)
        @max_message_age = number(:max_message_age, max_message_age)
        freeze
      end

      # @param seconds [Numeric] the age of a message at which to stop
      # @return [RetryPolicy]
      def give_up_after(seconds)
        with(max_message_age: seconds)
      end

      # @param factor [Numeric]
      # @return [RetryPolicy]
      def with_jitter(factor)
        with(jitter_factor: factor)
      end

      # @param attempt [Integer] the attempt that has just failed, from 1
      # @param age [Numeric] seconds since the message was first sent
      # @param jitter [Boolean]
      # @return [Float, nil] seconds until the next attempt, nil when there is none
      def next_delay(attempt, age = 0.0, jitter: true)
        return if attempt >= max_attempts || too_old?(age)

        delay = backoff(attempt)
        jitter ? jittered(delay) : delay
      end

      # @return [Array<Float>] the delays without jitter, one fewer than attempts
      def schedule
        (1...max_attempts).map { |attempt| backoff(attempt) }
      end

      # @return [Array<Float>] {#schedule} up to where it no longer changes, however many attempts there are
      def delays
        (1...max_attempts).each_with_object([]) do |attempt, delays|
          delay = backoff(attempt)
          break delays if delay == delays.last

          delays << delay
        end
      end

      # @param delay [Float] seconds
      # @return [Float]
      def jittered(delay)
        return delay if jitter_factor.zero? || delay.zero?

        [delay * (1 + (jitter_factor * ((rand * 2) - 1))), 0.0].max
      end

      # @return [Boolean]
      def ==(other)
        other.is_a?(RetryPolicy) && to_h == other.to_h
      end
      alias eql? ==

      # @return [Integer]
      def hash
        to_h.hash
      end

      # @return [Hash{Symbol => Numeric}] the keywords of {#initialize}
      def to_h
        { max_attempts: max_attempts, initial_delay: initial_delay, multiplier: multiplier, max_delay: max_delay,
          jitter_factor: jitter_factor, max_message_age: max_message_age }
      end

      private

      def with(**changes)
        self.class.new(**to_h, **changes)
      end

      def too_old?(age)
        max_message_age.positive? && age >= max_message_age
      end

      def backoff(attempt)
        return 0.0 if initial_delay.zero?

        delay = initial_delay * (multiplier**(attempt - 1))
        max_delay.positive? ? [delay, max_delay].min : delay
      end

      def attempts(value)
        return value if value.is_a?(Integer) && value.positive?

        raise ArgumentError, "max_attempts must be an Integer of 1 or more, not #{value.inspect}"
      end

      def number(name, value)
        number = value.to_f if value.is_a?(Numeric) && value.real?
        return number if number&.finite? && !number.negative?

        raise ArgumentError, "#{name} must be a number, 0 or more, not #{value.inspect}"
      end
    end
  end
end
