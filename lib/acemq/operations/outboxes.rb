# frozen_string_literal: true

require_relative "../operations"

module AceMQ
  module Operations
    # The outboxes that a command is about: one per model or shard, or the plain table.
    class Outboxes
      include Enumerable

      # An outbox, and what to call it in front of people.
      Named = Struct.new(:name, :store) do
        # @return [Array<AMQP::Patterns::OutboxRelay>] those that the application's initializers have made for it
        def relays
          AceMQ::Rails::Relays.kept.select { |relay| relay.store.respond_to?(:place) && relay.store.place == store.place }
        end

        # @param message [#exchange, #routing_key]
        # @return [Boolean] whether it has to reach a queue: where no relay is known, each has to
        def mandatory?(message)
          known = relays
          known.empty? || known.any? { |relay| relay.mandatory?(message) }
        end
      end

      class << self
        # What a command is about when it is not told: the outboxes whose relays the application's initializers have made,
        # or the plain one.
        #
        # @param options [Hash] keywords of {#initialize}
        # @return [Enumerable<Named>]
        def chosen(table: nil, models: [], shards: [], **options)
          stores = table || models.any? || shards.any? ? [] : the_applications
          return new(table: table, models: models, shards: shards, **options) if stores.empty?

          tables = stores.map(&:table)
          stores.each_with_index.map do |store, index|
            Named.new(tables.one?(store.table) ? store.table : "#{store.table} ##{index + 1}", store)
          end
        end

        private

        # Stores of another kind have no more to show than they do.
        def the_applications
          AceMQ::Rails::Relays.kept.map(&:store).grep(AMQP::Patterns::ActiveRecordOutboxStore).uniq
        end
      end

      # @param table [String, nil] "acemq_outbox", or the model's own, when nil
      # @param models [Array<String>] names of ActiveRecord classes, one outbox each
      # @param shards [Array<String>] one outbox each, of every model
      # @param options [Hash] keywords of {AMQP::Patterns::ActiveRecordOutboxStore#initialize}
      # @raise [ArgumentError]
      # @raise [AMQP::ConfigurationError] for a class or a shard that does not exist
      def initialize(table: nil, models: [], shards: [], **options)
        classes = models.empty? ? [nil] : models.map { |name| model(name) }
        places = classes.product(shards.empty? ? [nil] : shards).each { |model, shard| check_shard(model, shard) if shard }
        @outboxes = places.map { |model, shard| named(model, shard, table, options) }
      end

      # @yieldparam outbox [Named]
      def each(&block)
        @outboxes.each(&block)
      end

      # @return [Array<AMQP::Patterns::ActiveRecordOutboxStore>]
      def stores
        map(&:store)
      end

      private

      def model(name)
        Object.const_get(name)
      rescue NameError
        raise AMQP::ConfigurationError, "there is no class #{name}: name the ActiveRecord class whose database has the outbox"
      end

      # Asks no database: a shard that is away is one all the same.
      def check_shard(model, shard)
        base = ::ActiveRecord::Base
        base.connected_to(role: base.current_role, shard: shard.to_sym) { (model || base).connection_pool }
      rescue ::ActiveRecord::ConnectionNotEstablished
        raise AMQP::ConfigurationError, "#{model || base} has no shard #{shard}: name one that its `connects_to shards:` names"
      end

      def named(model, shard, table, options)
        store = AMQP::Patterns::ActiveRecordOutboxStore.new(model: model, table: table, shard: shard, **options)
        Named.new([store.table, (model.name if model), shard].compact.join(" of "), store)
      end
    end
  end
end
