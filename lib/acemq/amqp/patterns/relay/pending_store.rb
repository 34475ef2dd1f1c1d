# frozen_string_literal: true

require_relative "../failpoint"
require "set"
require_relative "../../clock"
require_relative "instrument"
require_relative "surroundings"
require_relative "verdicts"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # A store with the family's three or four methods: `add`, `pending`, `mark_published`, perhaps `mark_failed`.
        # Each record is marked as soon as it is confirmed, and the first failure stops the batch.
        class PendingStore
          # Seconds for which records that were read and not sent are kept in hand. Such a store may have leased
          # them and has no way to give them back, so for the rest of the lease nobody else could send them either;
          # its length is not known, and past it another relay may have them.
          IN_HAND = 30

          # @param store [#pending, #mark_published]
          # @param options [Options]
          def initialize(store, options)
            @store = store
            @options = options
            @verdicts = Verdicts.new(options.ordering, options.on_retire)
            @unmarked = []
            @in_hand = {}
          end

          # Marks what was confirmed and could not be marked, before anything is read: it would be published again.
          #
          # @return [Array] nothing is known of retired records
          def settle_kept
            until @unmarked.empty?
              Surroundings.lending { @store.mark_published(@unmarked.first) }
              @unmarked.shift
            end
            []
          end

          # @return [Rows]
          def take(**)
            Failpoint.reach(:before_claim)
            now = Clock.now
            @in_hand.delete_if { |_, (_, read_at)| now - read_at > IN_HAND }
            # Never none: 0 means "all" to such a store, and the head of the table may be free again.
            limit = [@options.batch - @in_hand.size, 1].max
            fresh = Instrument.claim(@store, limit) { Surroundings.lending { @store.pending(limit).to_a } }
            Failpoint.reach(:after_claim) unless fresh.empty?
            Rows.new(self, in_order(fresh), now, @options)
          end

          # @param record [OutboxRecord] confirmed
          def mark(record)
            @unmarked << record.id
            @in_hand.delete(record.id)
            Failpoint.reach(:after_confirm)
            Instrument.mark_one(@store) { Surroundings.lending { @store.mark_published(record.id) } }
            @unmarked.delete(record.id)
          end

          # @param rows [Rows]
          # @param outcomes [Outcomes]
          # @return [Array] nothing is known of retired records
          def settle(rows, outcomes)
            lists = @verdicts.lists(outcomes)
            keep_in_hand(rows, lists)
            outcomes.confirmed.each { |record| mark(record) unless rows.marked?(record) }
            lists.failed.each { |id, reason, _| mark_failed(id, reason) }
            []
          end

          private

          def in_order(fresh)
            ids = Set.new(fresh.map(&:id))
            @in_hand.delete_if { |id, _| ids.include?(id) }
            return fresh if @in_hand.empty?

            all = @in_hand.values.map(&:first) + fresh
            # A store of the application's own may leave the time out.
            all.all? { |record| record.created_at.is_a?(Time) } ? all.sort_by { |r| [r.created_at, r.id.to_s] } : all
          end

          def keep_in_hand(rows, lists)
            left = Set.new(lists.unsent + lists.failed.map(&:first))
            rows.records.each { |r| @in_hand[r.id] ||= [r, rows.read_at] if left.include?(r.id) }
          end

          # Says that the record is free again, so it need not be kept in hand.
          def mark_failed(id, reason)
            return unless @store.respond_to?(:mark_failed)

            Surroundings.lending { @store.mark_failed(id, reason) }
            @in_hand.delete(id)
          end

          # Records as read, with no claim on them.
          class Rows
            # @return [Array<OutboxRecord>]
            attr_reader :records
            # @return [Float] on {Clock}
            attr_reader :read_at

            def initialize(store, records, read_at, options)
              @store = store
              @records = records
              @read_at = read_at
              @options = options
              @marked = {}.compare_by_identity
            end

            # @return [Boolean] whether there may be more to read
            def full?
              records.size >= @options.batch
            end

            # @return [Float] seconds in which one message has to be written
            def send_by
              @options.confirm_timeout
            end

            # There is no lease to renew.
            #
            # @return [Boolean]
            def renew_if_due
              false
            end

            def ours?
              true
            end

            # Marked one by one, so that a relay that dies repeats as little as it can.
            #
            # @return [Array<OutboxRecord>]
            def sent(records, outcomes)
              records.each do |record|
                next unless outcomes.of(record) == Outcomes::CONFIRMED

                @marked[record] = true
                @store.mark(record)
              end
            end

            def marked?(record)
              @marked.key?(record)
            end

            # @return [Array] nothing is known of retired records
            def settle(outcomes)
              @store.settle(self, outcomes)
            end
          end
        end
      end
    end
  end
end
