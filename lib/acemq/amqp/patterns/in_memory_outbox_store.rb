# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # An outbox in this process's memory, for specs and examples: it takes part in no transaction and does not
      # outlive its process.
      class InMemoryOutboxStore
        def initialize
          @records = {}
          @lock = Mutex.new
        end

        # @param record [OutboxRecord] the first one of an id stays
        # @return [nil]
        # @raise [ArgumentError] for an empty id
        def add(record)
          raise ArgumentError, "an outbox record needs an id" if record.id.to_s.empty?

          @lock.synchronize { @records[record.id] ||= record }
          nil
        end

        # Claims nothing: two relays on one store would both get the same records.
        #
        # @param limit [Integer] all of them when not positive
        # @return [Array<OutboxRecord>] oldest first
        def pending(limit = 0)
          records = @lock.synchronize { @records.values }.sort_by { |record| [record.created_at, record.id] }
          limit.positive? ? records.first(limit) : records
        end

        # @param id [String, Array<String>] unknown ones are ignored
        # @return [nil]
        def mark_published(id)
          @lock.synchronize { Array(id).each { |one| @records.delete(one) } }
          nil
        end

        # @return [Integer] records not published yet
        def size
          @lock.synchronize { @records.size }
        end
        alias pending_count size
      end
    end
  end
end
