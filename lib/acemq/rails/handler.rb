# frozen_string_literal: true

module AceMQ
  module Rails
    # One instance of a consumer class, called as Rails wants an application's code to be called from a foreign thread:
    # in the executor, so that it gives its database connection back, and with its failures reported.
    #
    # @api private
    class Handler
      # @param consumer_class [Class]
      # @param logger [Logger]
      def initialize(consumer_class, logger:)
        @consumer = consumer_class.new
        @queue = consumer_class.queue
        @logger = logger
      end

      # @param message [AceMQ::AMQP::Message]
      # @return [AceMQ::AMQP::Ack]
      def call(message)
        executor = self.class.executor
        executor ? executor.wrap { recorded(message) } : recorded(message)
      end

      # @return [Class, nil] the executor of the Rails application
      def self.executor
        return unless defined?(::Rails) && ::Rails.respond_to?(:application)

        application = ::Rails.application
        application.executor if application.respond_to?(:executor)
      end

      private

      # NotImplementedError and LoadError are ScriptErrors.
      def recorded(message)
        @consumer.call(message)
      rescue StandardError, ScriptError => e
        report(e, message.envelope)
        raise
      end

      def report(error, envelope)
        @logger.error("acemq: #{@consumer.class} failed on message #{envelope.id} of #{@queue}, attempt " \
                      "#{envelope.attempt}: #{error.class}: #{error.message}")
        return unless defined?(::Rails) && ::Rails.respond_to?(:error)

        ::Rails.error.report(error, handled: false, severity: :error,
                                    context: { consumer: @consumer.class.name, queue: @queue, message_id: envelope.id,
                                               attempt: envelope.attempt })
      end
    end
  end
end
