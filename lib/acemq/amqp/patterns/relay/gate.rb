# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Whether a relay that is told to start may do so now. A framework that is still loading the application puts
        # the start off.
        module Gate
          class << self
            # @return [#keep?, nil] asked with the relay; whoever says true starts it later
            attr_accessor :keeper

            # @param relay [OutboxRelay]
            # @return [Boolean]
            def keeps?(relay)
              keeper ? keeper.keep?(relay) : false
            end
          end
        end
      end
    end
  end
end
