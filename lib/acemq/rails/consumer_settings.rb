# frozen_string_literal: true

require_relative "../amqp/retry_policy"
require_relative "settings"

module AceMQ
  module Rails
    # What consumer classes have that do not say otherwise: `config.acemq.consumer`.
    class ConsumerSettings < Settings
      PATH = "config.acemq.consumer"

      DEFAULTS = {
        # Messages handed over ahead, to all threads of a class together; 0 is no limit.
        prefetch: 20,
        # Threads of a class.
        concurrency: 1,
        # Attempts in all; 1 is no retry.
        max_attempts: 1,
        # Seconds before the second attempt, and at most.
        initial_delay: 0.0,
        max_delay: 0.0,
        multiplier: 2.0,
        # 0.2 is 0.8 to 1.2 times the delay. Only waits outside of the broker have it.
        jitter: nil,
        # Seconds after which a message is not tried again.
        give_up_after: nil,
        # Seconds from which on a retry waits in the broker instead of this process.
        broker_wait_threshold: 30.0
      }.freeze

      define_settings

      # @return [AceMQ::AMQP::RetryPolicy]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def retry_policy
        policy = AMQP::RetryPolicy.new(max_attempts: max_attempts.is_a?(Integer) ? [max_attempts, 2].max : max_attempts, **delays)
        max_attempts <= 1 ? AMQP::RetryPolicy.none : policy
      rescue ArgumentError => e
        raise AMQP::ConfigurationError, "#{self.class::PATH}: #{e.message}"
      end

      # What `retries` of a consumer class starts from.
      #
      # @return [Hash{Symbol => Numeric}] keywords of {AceMQ::AMQP::RetryPolicy}, without max_attempts
      def delays
        { initial_delay: initial_delay, max_delay: max_delay, multiplier: multiplier, jitter_factor: jitter || 0.0,
          max_message_age: give_up_after || 0.0 }
      end

      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def validate!
        whole(:prefetch, 0)
        whole(:concurrency, 1)
        retry_policy
        return self if broker_wait_threshold.is_a?(Numeric) && !broker_wait_threshold.negative?

        raise AMQP::ConfigurationError, "#{self.class::PATH}.broker_wait_threshold must be seconds, 0 or more, " \
                                        "not #{broker_wait_threshold.inspect}"
      end

      private

      def whole(name, least)
        value = public_send(name)
        return if value.is_a?(Integer) && value >= least

        raise AMQP::ConfigurationError, "#{self.class::PATH}.#{name} must be an Integer, #{least} or more, not #{value.inspect}"
      end
    end
  end
end
