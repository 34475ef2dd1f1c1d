# frozen_string_literal: true

require_relative "../log"
require_relative "../clock"
require_relative "relay/surroundings"

module AceMQ
  module AMQP
    module Patterns
      # Prolongs the claims of handlers that run: one thread for the process, however many they are.
      #
      # A claim is renewed a third of its length after it was made, and so on while its handler runs, until a limit.
      # A renewal that fails, or has to wait for somebody, is tried again soon; what became of the claim then shows when it
      # is confirmed. Between renewals no database connection is held.
      #
      # @api private
      class ClaimRenewer
        NAME = "acemq-claims"

        # Parts of a claim's length: between renewals, and after one that failed or could not be made yet.
        EVERY = 3.0
        AGAIN = 12.0

        # What a renewal answers that cannot be made yet.
        LATER = :later

        # @!attribute call  [#call] renews; answers whether the claim still stands, or {LATER}
        # @!attribute lease [Numeric] seconds
        # @!attribute due   [Float] on {Clock}
        # @!attribute ends  [Float] when it is not renewed any more
        Held = Struct.new(:call, :lease, :due, :ends)

        @lock = Mutex.new

        class << self
          # @return [ClaimRenewer] of this process: a forked child has nothing of its parent's to renew
          def instance
            @lock.synchronize do
              @instance = nil unless @process == Process.pid
              @process = Process.pid
              @instance ||= new
            end
          end
        end

        def initialize
          @held = {}.compare_by_identity
          @lock = Mutex.new
          @changed = ConditionVariable.new
          @busy = nil
        end

        # @param renewal [#call] see {Held}
        # @param lease [Numeric] seconds that a claim stands after it was made or renewed
        # @param limit [Numeric] seconds for which it is renewed at most
        # @yield the handler; once it has ended, no renewal is under way
        # @return [Object] what the block returns
        def during(renewal, lease:, limit:)
          now = Clock.now
          held = Held.new(renewal, lease, now + (lease / EVERY), now + limit)
          hold(held)
          yield
        ensure
          let_go(held) if held
        end

        private

        def hold(held)
          @lock.synchronize do
            @held[held] = true
            @changed.broadcast
            @thread = Thread.new { run }.tap { |thread| thread.name = NAME } unless @thread&.alive?
          end
        end

        def let_go(held)
          @lock.synchronize do
            @held.delete(held)
            @changed.wait(@lock) while @busy.equal?(held) && @thread.alive?
          end
        end

        def run
          loop { renew(take_next) }
        end

        # @return [Held] whose time has come
        def take_next
          @lock.synchronize do
            until (@busy = due)
              nearest = @held.each_key.map(&:due).min
              @changed.wait(@lock, nearest && [nearest - Clock.now, 0].max)
            end
            @busy
          end
        end

        def due
          now = Clock.now
          @held.delete_if { |held, _| held.ends <= now }
          @held.each_key.find { |held| held.due <= now }
        end

        def parts(answer)
          answer == LATER ? AGAIN : EVERY
        end

        def renew(held)
          asked_at = Clock.now
          stands = Relay::Surroundings.wrap { held.call.call }
          held.due = stands ? asked_at + (held.lease / parts(stands)) : held.ends
        rescue StandardError => e
          held.due = Clock.now + (held.lease / AGAIN)
          Log.warn("an idempotency claim could not be renewed and is tried again: #{e.message} (#{e.class})")
        ensure
          @lock.synchronize do
            @busy = nil
            @changed.broadcast
          end
        end
      end
    end
  end
end
