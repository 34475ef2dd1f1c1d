# frozen_string_literal: true

module AceMQ
  module Rails
    # The consumer classes and their settings, for a terminal.
    #
    # @api private
    class ConsumerTable
      HEAD = ["queue", "class", "concurrency", "prefetch", "attempts", "retries after (s)"].freeze

      # @param classes [Array<Class>]
      # @param config [Configuration]
      def initialize(classes, config: AceMQ::Rails.config)
        @classes = classes
        @config = config
      end

      # @return [String]
      def to_s
        return "no consumer class is loaded that has a queue" if @classes.empty?

        lines = [HEAD, *@classes.sort_by { |consumer| [consumer.queue, consumer.to_s] }.map { |consumer| line(consumer) }]
        widths = lines.transpose.map { |column| column.map(&:length).max }
        lines.map { |cells| cells.zip(widths).map { |cell, width| cell.ljust(width) }.join("  ").rstrip }.join("\n")
      end

      private

      def line(consumer)
        defaults = @config.consumer
        policy = consumer.retries || defaults.retry_policy
        [consumer.queue, consumer.to_s, (consumer.concurrency || defaults.concurrency).to_s,
         (consumer.prefetch || defaults.prefetch).to_s, policy.max_attempts.to_s, delays(policy)]
      end

      def delays(policy)
        policy.schedule.map { |seconds| seconds == seconds.to_i ? seconds.to_i : seconds }.join(" ")
      end
    end
  end
end
