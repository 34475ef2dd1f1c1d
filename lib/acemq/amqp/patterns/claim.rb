# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # What an idempotency store answers to `claim(key)`.
      module Claim
        # The key is this caller's: do the work, then confirm.
        CLAIMED = :claimed
        # The work of this key is done: only a confirmed key gets this answer.
        DUPLICATE = :duplicate
        # Somebody else is at it: come back later.
        IN_PROGRESS = :in_progress
      end

      # The claim went stale while its handler ran and somebody else has the key now.
      #
      # Raised by `confirm`, so that a transaction around it rolls the late work back.
      class ClaimLostError < StandardError; end
    end
  end
end
