# frozen_string_literal: true

require_relative "../../operations"

module AceMQ
  module Rails
    class Probe
      # The outboxes that a process has to do with: those of its relays, or the plain one where it knows of no relay.
      #
      # @api private
      class Outboxes
        # @param relays [Array<AMQP::Patterns::OutboxRelay>] all that are known, whether they run here or not
        def initialize(relays)
          @stores = relays.map(&:store)
        end

        # @return [Array<Operations::Outboxes::Named>] by what events call them; a store that cannot be asked is none
        def to_a
          return plain if plain?

          stores = @stores.select { |store| store.respond_to?(:ping) }
          stores.uniq { |store| store.respond_to?(:place) ? store.place : store }.group_by { |store| label(store) }
                .flat_map { |label, alike| named(label, alike) }
        end

        # @return [Boolean] whether there may as well be none
        def plain?
          @stores.empty?
        end

        private

        # An application without a database has no pool for one.
        def plain
          return [] unless defined?(::ActiveRecord::Base)

          ::ActiveRecord::Base.connection_pool
          Operations::Outboxes.new.to_a
        rescue ::ActiveRecord::ConnectionNotEstablished
          []
        end

        def label(store)
          store.respond_to?(:label) ? store.label : store.table
        end

        def named(label, alike)
          alike.each_with_index.map do |store, index|
            Operations::Outboxes::Named.new(alike.one? ? label : "#{label} ##{index + 1}", store)
          end
        end
      end
    end
  end
end
