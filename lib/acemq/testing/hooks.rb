# frozen_string_literal: true

require_relative "../amqp/patterns"

module AceMQ
  module Testing
    # Hears of every record that one of the library's stores adds. A second one of the same id is not added.
    #
    # @api private
    module Hooks
      # Prepended to the stores.
      module Add
        def add(record, **options)
          known = Hooks.heard? && Hooks.row?(self, record)
          super.tap { Hooks.added(self, record) unless known }
        end
      end

      STORES = %i[ActiveRecordOutboxStore InMemoryOutboxStore SQLOutboxStore].freeze

      @listeners = []
      @lock = Mutex.new

      class << self
        # @yieldparam store [Object]
        # @yieldparam record [AMQP::Patterns::OutboxRecord]
        # @return [Proc] to be handed to {.forget}
        def listen(&listener)
          install
          @lock.synchronize { @listeners |= [listener] }
          listener
        end

        # @param listener [Proc]
        def forget(listener)
          @lock.synchronize { @listeners -= [listener] }
          nil
        end

        # @return [Boolean] whether anybody listens
        def heard?
          @lock.synchronize { @listeners.any? }
        end

        # @return [Boolean, nil] whether the store's table has the record; nil where there is no table to look into
        def row?(store, record)
          return unless store.respond_to?(:examine)

          store.examine do |sql|
            sql.db.rows("SELECT 1 FROM #{sql.table.quoted} WHERE id IN (#{sql.db.quote(record.id)})", "AceMQ check").any?
          end
        end

        def added(store, record)
          @lock.synchronize { @listeners.dup }.each { |listener| listener.call(store, record) }
        end

        private

        # ActiveRecord is not asked for where it is not there.
        def install
          STORES.each do |name|
            next unless name != :ActiveRecordOutboxStore || defined?(::ActiveRecord::Base)
            next unless AMQP::Patterns.const_defined?(name)

            store = AMQP::Patterns.const_get(name)
            store.prepend(Add) unless store < Add
          end
        end
      end
    end
  end
end
