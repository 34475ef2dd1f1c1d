# frozen_string_literal: true

require "securerandom"

module AceMQ
  module SpecSupport
    # An outbox in memory that leases, charges, holds and retires as the contract of the stores says, by a clock that
    # only moves when a spec moves it.
    class FakeClaimingStore
      Row = Struct.new(:record, :published, :attempts, :error, :token, :until, keyword_init: true) do
        def id = record.id
        def destination = [record.exchange, record.routing_key]
        def place = [record.created_at, id]

        def lease_to(token, time)
          self.token = token
          self.until = time
        end

        def free?(now, ignore_backoff) = self.until.nil? || self.until < now || (ignore_backoff && token.nil?)

        def publish
          self.published = true
          lease_to(nil, nil)
        end
      end

      Settlement = Struct.new(:marked, :retired, :lost)

      BACKOFF = 30.0 # seconds

      attr_reader :lease, :max_attempts, :settlements, :claims, :renewals
      attr_accessor :now

      # @param failing [Hash{Symbol => Integer}] how often a method is to raise before it works
      def initialize(lease: 30.0, max_attempts: 3, failing: {})
        @lease = lease
        @max_attempts = max_attempts
        @failing = failing
        @rows = {}
        @now = 0.0
        @settlements = []
        @claims = []
        @renewals = 0
        @lock = Monitor.new
      end

      def fail_next(method, times = 1)
        @failing[method] = times
      end

      def add(record)
        @lock.synchronize { @rows[record.id] ||= Row.new(record: record, attempts: 0) }
        nil
      end

      def pending(limit) = claim(limit).records

      def mark_published(ids)
        maybe_fail(:mark_published)
        Array(ids).each { |id| row(id).published = true }
      end

      def claim(limit, ordering: :destination, ignore_backoff: false)
        maybe_fail(:claim)
        @lock.synchronize do
          @claims << { limit: limit, ordering: ordering, ignore_backoff: ignore_backoff }
          token = SecureRandom.uuid
          rows = claimable(ordering, ignore_backoff).first(limit)
          rows.each { |row| row.lease_to(token, now + lease) }
          FakeClaim.new(self, token, rows.map(&:record))
        end
      end

      def renew(token)
        maybe_fail(:renew)
        @renewals += 1
        held = @rows.values.select { |row| row.token == token }
        held.each { |row| row.until = now + lease }
        held.size
      end

      def settle(token, lists)
        maybe_fail(:settle)
        @lock.synchronize do
          @settlements << lists
          lists[:confirmed].each { |id| row(id).publish }
          lists[:failed].each { |id, reason, permanent| charge(token, id, reason, permanent) }
          lists[:held].each { |id, reason| hold(token, id, reason) }
          lists[:unsent].each { |id| release(token, id) }
          Settlement.new(lists[:confirmed].size, retired & lists[:failed].map(&:first), 0)
        end
      end

      def row(id) = @rows.fetch(id)
      def published = @rows.values.select(&:published).map(&:id)
      def leased = @rows.values.select { |row| row.token && row.until >= now }.map(&:id)
      def backing_off = @rows.values.select { |row| row.token.nil? && row.until && row.until >= now }.map(&:id)
      def attempts = @rows.transform_values(&:attempts)
      def pending_count = @rows.values.count { |row| !row.published && !retired.include?(row.id) }

      def retired
        @rows.values.select { |row| !row.published && row.attempts >= max_attempts }.map(&:id)
      end

      FakeClaim = Struct.new(:store, :token, :records) do
        def lease = store.lease
        def renew = store.renew(token)
        def settle(**lists) = store.settle(token, lists)
      end

      private

      def maybe_fail(method)
        return unless @failing.fetch(method, 0).positive?

        @failing[method] -= 1
        raise IOError, "the database refuses to #{method}"
      end

      def claimable(ordering, ignore_backoff)
        free = ->(row) { row.free?(now, ignore_backoff) }
        case ordering
        when :none then live.select(&free)
        when :strict then live.take_while(&free)
        else live.group_by(&:destination).values.flat_map { |lane| lane.take_while(&free) }.sort_by(&:place)
        end
      end

      def live
        @rows.values.reject { |row| row.published || row.attempts >= max_attempts }.sort_by(&:place)
      end

      def charge(token, id, reason, permanent)
        return unless row(id).token == token

        back_off(row(id), reason)
        row(id).attempts = permanent ? max_attempts : row(id).attempts + 1
        row(id).until = nil if row(id).attempts >= max_attempts
      end

      def hold(token, id, reason)
        return unless row(id).token == token

        row(id).attempts = [row(id).attempts + 1, max_attempts - 1].min
        back_off(row(id), reason)
      end

      def back_off(row, reason)
        row.error = reason
        row.token = nil
        row.until = now + BACKOFF
      end

      def release(token, id)
        return unless row(id).token == token

        row(id).token = row(id).until = nil
      end
    end
  end
end
