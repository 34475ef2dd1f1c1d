# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Which claims the running execution (a fiber) holds, and the token that proves each.
      #
      # By execution, not by process or store object: two threads of one process must not settle each other's claims,
      # and `Store.new.confirm(key)` inside a handler must find the claim that another object of the same store made.
      #
      # @api private
      class OwnedClaims
        Held = Struct.new(:token, :confirmed)

        # @param place [Object] what the claims are about: a table's name, or a window
        def initialize(place)
          @place = place
        end

        # @param key [String]
        # @param token [Object]
        def store(key, token)
          # An execution does one piece of work after the other: what it has confirmed is behind it.
          held.delete_if { |_, claim| claim.confirmed }
          held[key] = Held.new(token, false)
        end

        # @return [Object, nil] the token
        def fetch(key)
          held[key]&.token
        end

        # Kept until the next claim, so that a second confirm is a no-op.
        def confirmed(key)
          held[key]&.confirmed = true
        end

        # @return [Boolean]
        def confirmed?(key)
          held[key]&.confirmed || false
        end

        # @return [Object, nil] the token
        def delete(key)
          held.delete(key)&.token
        end

        private

        def held
          (Thread.current[:acemq_owned_claims] ||= {})[@place] ||= {}
        end
      end
    end
  end
end
