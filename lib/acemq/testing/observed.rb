# frozen_string_literal: true

require_relative "../rails"
require_relative "hooks"

module AceMQ
  module Testing
    # What a block put into outboxes, or published.
    #
    # @api private
    module Observed
      # Records of one claim at most, where a store has no other way to show what it has.
      MANY = 10_000

      class << self
        # @param store [Object, nil] any of the library's when nil
        # @yield what is watched
        # @return [Array<AMQP::Patterns::OutboxRecord>] those that are there afterwards: a rollback takes them along
        def outboxed(store = nil, &block)
          return new_ones(-> { in_outbox(store) }, :id, &block) unless store.nil? || listened_to?(store)

          added = []
          listener = Hooks.listen { |where, record| added << [where, record] if store.nil? || same?(where, store) }
          yield
          added.reject { |where, record| Hooks.row?(where, record) == false }.map(&:last).uniq(&:id)
        ensure
          Hooks.forget(listener) if listener
        end

        # @return [Array<AMQP::Patterns::OutboxRecord>] what is still to be published
        def in_outbox(store)
          store.respond_to?(:peek) ? store.peek(MANY) : store.pending(MANY)
        end

        # @param where [AMQP::Connection, #published, nil] {AceMQ::Rails.connection} when nil
        # @return [Array<FakeTransport::Published>] by the block; all when there is none
        def published(where = nil, &block)
          transport = transport(where || AceMQ::Rails.connection)
          block ? new_ones(-> { transport.published }, :itself, &block) : transport.published
        end

        private

        def listened_to?(store)
          Hooks::STORES.any? { |name| AMQP::Patterns.const_defined?(name) && AMQP::Patterns.const_get(name) === store } # rubocop:disable Style/CaseEquality
        end

        def new_ones(look, identity)
          before = look.call.dup
          yield
          after = look.call
          return after.drop(before.size) if identity == :itself

          known = before.map(&identity)
          after.reject { |one| known.include?(one.public_send(identity)) }
        end

        # Applications make stores as often as they like; what counts is the table.
        def same?(one, other)
          one.equal?(other) || ([one, other].all? { |store| store.respond_to?(:place) } && one.place == other.place)
        end

        def transport(where)
          found = where.respond_to?(:transport) ? where.transport : where
          return found if found.respond_to?(:published)

          raise ArgumentError, "#{found.class} does not answer published: use AceMQ::Testing::FakeTransport in this spec"
        end
      end
    end
  end
end
