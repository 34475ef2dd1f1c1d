# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Places at which a relay can be made to die, for proofs of what happens then. Off unless the environment says
      # otherwise when this file is loaded:
      #
      #   ACEMQ_FAILPOINTS="after_claim=kill@0.1,mid_mark=sleep:2,after_publish=stop#3,seed=7"
      #
      # | place         | when it is reached |
      # |---|---|
      # | before_claim  | nothing is claimed yet |
      # | mid_claim     | rows are leased and not read yet, on databases where that takes two statements |
      # | after_claim   | rows are leased, nothing is sent |
      # | after_publish | everything that may be out at once is written, no confirm is awaited yet |
      # | after_confirm | something is confirmed, nothing is marked |
      # | mid_mark      | the confirmed rows are marked, what else is known of the batch is not told yet |
      #
      # What stands behind the name: `kill` and `stop` (the signals), `raise`, or `sleep:` and seconds; then perhaps
      # `@` and a probability, or `#` and the one passage that it is meant for. `after_publish` is in the core, which
      # reads the same variable.
      #
      # @api private
      module Failpoint
        NAMES = %i[before_claim mid_claim after_claim after_publish after_confirm mid_mark].freeze
        VARIABLE = "ACEMQ_FAILPOINTS"

        # @param name [Symbol]
        # @return [nil]
        def self.reach(name)
          ARMED&.reach(name)
        end

        # @param text [String, nil] of the variable
        # @return [ArmedFailpoints, nil] nil when there is nothing to arm
        def self.armed(text)
          return if text.nil? || text.empty?

          require_relative "armed_failpoints"
          ArmedFailpoints.new(text)
        end

        ARMED = armed(ENV.fetch(VARIABLE, nil))
      end
    end
  end
end
