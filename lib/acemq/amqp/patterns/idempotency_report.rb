# frozen_string_literal: true

require_relative "../log"
require_relative "../notifications"
require_relative "hit_rate"

module AceMQ
  module AMQP
    module Patterns
      # Tells whoever wants to know what came of a claim: the store's {HitRate}, an observer, and the subscribers of
      # {Notifications}.
      #
      # @api private
      class IdempotencyReport
        # @param store [Object]
        # @param observer [#count, nil]
        def initialize(store, observer)
          @store = store.class.name
          @observers = [(store.hit_rate if store.respond_to?(:hit_rate)), observer].compact
        end

        # Reports what goes wrong and raises nothing: the work is what counts.
        #
        # @param outcome [Symbol]
        # @param key [String]
        def tell(outcome, key)
          @observers.each { |observer| observer.count(HitRate::METRIC, 1, outcome: outcome) }
          Notifications.tell(:idempotency, outcome: outcome, key: key, store: @store)
          Notifications.tell(:duplicate, key: key) if outcome == Claim::DUPLICATE
        rescue StandardError => e
          Log.warn("an observer of idempotency failed: #{e.message} (#{e.class})")
        end
      end
    end
  end
end
