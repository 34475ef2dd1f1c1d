# frozen_string_literal: true

require_relative "../../native"
require_relative "claim"
require_relative "execution_claims"
require_relative "hit_rate"

module AceMQ
  module AMQP
    module Patterns
      # Idempotency for one process: right in a spec, wrong as soon as two processes consume.
      #
      # A key is remembered for a fixed window from its claim; neither a repeat nor a confirm extends it. The window
      # is also how long a claim stands whose handler never finished. Every call costs the same at any size.
      class InMemoryIdempotencyStore
        # Seconds, the family's.
        DEFAULT_WINDOW = 3600.0

        # @return [Float] seconds
        attr_reader :window
        # @return [HitRate] what came of the claims that {Patterns.idempotent} asked this object for
        attr_reader :hit_rate

        # @param window [Numeric] seconds; 0 or less takes {DEFAULT_WINDOW}, as in the family
        # @raise [ArgumentError] when it is no number
        def initialize(window: DEFAULT_WINDOW)
          raise ArgumentError, "window must be seconds, not #{window.inspect}" unless window.is_a?(Numeric) && window.real?

          @window = window.positive? ? window.to_f : DEFAULT_WINDOW
          @native = Native::Window.new(@window)
          @hit_rate = HitRate.new
        end

        # @param key [#to_s]
        # @return [Symbol] {Claim::CLAIMED}, {Claim::DUPLICATE} (only when it was confirmed) or {Claim::IN_PROGRESS}
        def claim(key)
          key = key.to_s
          answer = @native.claim(key)
          return answer if answer.is_a?(Symbol)

          ExecutionClaims.put(@native, key, ExecutionClaims::Entry.new(key, answer, false))
          Claim::CLAIMED
        end

        # @param key [#to_s]
        # @return [Boolean] whether the key is this caller's now
        def first_time?(key)
          claim(key) == Claim::CLAIMED
        end

        # Makes this execution's claim a fact. A second call is a no-op.
        #
        # @param key [#to_s]
        # @return [Boolean] false when this execution holds no claim on it
        # @raise [ClaimLostError] when the claim has outlived the window
        def confirm(key)
          entry = ExecutionClaims[@native, key.to_s] or return false
          return true if @native.confirm(key.to_s, entry.owner)

          ExecutionClaims.delete(@native, key.to_s)
          raise ClaimLostError, "the claim on #{key.to_s.inspect} outlived its window of #{window} s and is gone"
        end

        # Gives this execution's claim back; a confirmed key stays.
        #
        # @param key [#to_s]
        # @return [Boolean] whether there was one to give back
        def forget(key)
          entry = ExecutionClaims.delete(@native, key.to_s)
          entry ? @native.forget(key.to_s, entry.owner) : false
        end

        # @return [Integer] keys remembered
        def size
          @native.size
        end
      end
    end
  end
end
