# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # Relays, writers and a purger on one table. What the relays "publish" is written down while they hold the lease,
    # so the log of a destination is the order in which a broker would have got its messages.
    class OutboxTraffic
      DESTINATIONS = 12
      LIMIT = 40

      attr_reader :log, :oversized, :errors

      def initialize(seconds:, relays:, writers:, failing: 0.2)
        @seconds = seconds
        @relays = relays
        @writers = writers
        @failing = failing
        @log = Hash.new { |hash, key| hash[key] = [] }
        @oversized = []
        @errors = Queue.new
        @lock = Mutex.new
        @written = Hash.new(0)
      end

      def run
        @stop_writing = clock + @seconds
        writers = Array.new(@writers) { |i| thread { write(i) } }
        relays = Array.new(@relays) { thread { relay } }
        purger = thread { purge }
        writers.each(&:join)
        @written_all = true
        (relays << purger).each(&:join)
        self
      end

      # @return [Hash{String => Integer}] last number by destination
      attr_reader :written

      private

      def thread
        Thread.new do
          yield
        rescue StandardError => e
          @errors << e
        end
      end

      # One destination has one writer, so its numbers are in the order of its commits.
      def write(index)
        store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
        mine = (0...DESTINATIONS).select { |d| d % @writers == index }
        while clock < @stop_writing
          ActiveRecord::Base.transaction { rand(1..8).times { add_next(store, "d#{mine.sample}") } }
          ActiveRecord::Base.connection_pool.release_connection
        end
      end

      def add_next(store, destination)
        number = @lock.synchronize { @written[destination] += 1 }
        store.add(AceMQ::AMQP::Patterns::OutboxRecord.new(
                    id: SecureRandom.uuid, exchange: "e", routing_key: destination, body: number.to_s,
                    content_type: "text/plain", headers: {}
                  ))
      end

      def relay
        store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(lease: 60)
        until @written_all && store.pending_count.zero?
          claim = store.claim(LIMIT)
          @oversized << claim.records.size if claim.records.size > LIMIT
          claim.empty? ? sleep(0.002) : settle(claim) # spinning, it would only keep the writers from writing
        end
      end

      # Some heads fail: what follows them is given back, as a relay does.
      def settle(claim)
        confirmed = []
        held = []
        unsent = []
        claim.records.group_by(&:routing_key).each do |destination, records|
          sent = rand < @failing ? rand(0...records.size) : records.size
          note(destination, records.first(sent))
          confirmed.concat(records.first(sent))
          held.concat(records[sent, 1])
          unsent.concat(records.drop(sent + 1))
        end
        settled = claim.settle(confirmed: confirmed.map(&:id), held: held.map { |r| [r.id, "no"] }, unsent: unsent.map(&:id))
        raise "a lease was lost" if settled.lost.positive?
      end

      def note(destination, records)
        @lock.synchronize { @log[destination].concat(records.map { |record| record.body.to_i }) }
      end

      def purge
        store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new
        until @written_all && store.pending_count.zero?
          store.purge_published(0.2, batch: 100)
          sleep 0.05
        end
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
