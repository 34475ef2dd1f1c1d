# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # Waits for what must become true, instead of sleeping for as long as it might take.
    module Eventually
      PAUSE = 0.02 # seconds

      # Runs the expectations until they hold, and at the deadline once more so that their own failure is shown.
      # @param timeout [Numeric] seconds
      # @example eventually(5) { expect(relay.state.name).to eq :idle }
      def eventually(timeout = 10)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
        begin
          yield
        rescue RSpec::Expectations::ExpectationNotMetError
          raise if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

          sleep PAUSE
          retry
        end
      end
    end
  end
end
