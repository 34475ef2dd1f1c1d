# frozen_string_literal: true

require_relative "../amqp"
require_relative "settings"

module AceMQ
  module Rails
    # `config.acemq.topology` as a {AceMQ::AMQP::Topology}.
    #
    # @example in config/acemq.yml
    #   topology:
    #     exchanges:
    #       - { name: shop-events, type: topic }
    #     queues:
    #       - { name: shop.payments, dead_letter: true, retries: { max_attempts: 5, initial_delay: 60 } }
    #     bindings:
    #       - { queue: shop.payments, exchange: shop-events, routing_key: "order.#" }
    class TopologyBuilder
      # A list of the topology's, and what its entries may say.
      LISTS = {
        exchanges: %i[name type durable auto_delete arguments],
        queues: %i[name type durable auto_delete exclusive arguments dead_letter retries],
        bindings: %i[queue exchange routing_key]
      }.freeze
      DEFAULT_EXCHANGE_TYPE = "topic"

      # Of a queue's `retries`.
      class Retries < ConsumerSettings
        PATH = "config.acemq.topology.queues.retries"
        DEFAULTS = ConsumerSettings::DEFAULTS.except(:prefetch, :concurrency).freeze
      end

      # @param settings [Hash] lists of Hashes by `exchanges`, `queues` and `bindings`
      # @param defaults [ConsumerSettings] what a queue's `retries` start from
      def initialize(settings, defaults: ConsumerSettings.new)
        @settings = settings
        @defaults = defaults
      end

      # @return [AceMQ::AMQP::Topology]
      # @raise [AceMQ::AMQP::ConfigurationError] naming what there is no such thing as
      def build
        AMQP::Topology.new.tap do |topology|
          each(:exchanges) { |entry| add_exchange(topology, **entry) }
          each(:queues) { |entry| add_queue(topology, **entry) }
          each(:bindings) { |entry| topology.binding(entry[:queue], entry[:exchange], entry[:routing_key] || "") }
        end
      end

      private

      def each(list)
        entries = lists[list] || []
        raise AMQP::ConfigurationError, "#{path(list)} must be a list, not #{entries.class}" unless entries.is_a?(Array)

        entries.each { |entry| yield named(entry, LISTS.fetch(list), path(list)) }
      end

      def lists
        @lists ||= named(@settings, LISTS.keys, "config.acemq.topology")
      end

      def add_exchange(topology, name: nil, type: DEFAULT_EXCHANGE_TYPE, **options)
        topology.exchange(name, type.to_s, **options)
      end

      def add_queue(topology, name: nil, type: nil, retries: nil, **options)
        options[:queue_type] = type.to_sym if type
        topology.queue(name, **options, **retrying(retries))
      end

      def path(list)
        "config.acemq.topology.#{list}"
      end

      # What is nil was left empty in a file, and says nothing.
      def named(entry, keys, path)
        raise AMQP::ConfigurationError, "#{path} must be named values, not #{entry.inspect}" unless entry.respond_to?(:each_pair)

        named = entry.to_h.transform_keys { |name| name.to_s.tr("-", "_").to_sym }.compact
        unknown = named.keys - keys
        return named if unknown.empty?

        raise AMQP::ConfigurationError, "#{path} has no #{unknown.join(", ")}; there are #{keys.join(", ")}"
      end

      def retrying(given)
        return {} unless given

        retries = Retries.new(given).add(@defaults.to_h.slice(*Retries::DEFAULTS.keys))
        { retry_policy: retries.retry_policy, retry_threshold: retries.broker_wait_threshold }
      end
    end
  end
end
