# frozen_string_literal: true

require "tmpdir"
require_relative "../faults/chaos/relay_process"

module AceMQ
  module SpecSupport
    # Relays in processes of their own, which can be stopped and killed, on the example's database.
    module RelayProcesses
      # Killed after the example.
      #
      # @param failpoints [String, nil] for ACEMQ_FAILPOINTS
      # @param store [Hash] keywords of the store
      # @param options [Hash] keywords of the relay
      # @return [Chaos::RelayProcess]
      def relay_process(name = "relay", url: broker.url, failpoints: nil, store: {}, close_within: 5, **options)
        settings = { database: Database.config(database), url: url, close_within: close_within, store: store,
                     relay: { interval: 0.1 }.merge(options) }
        relay = Chaos::RelayProcess.new(name, settings, folder: relay_folder, failpoints: failpoints)
        cleanups << -> { relay.kill }
        relay.go
      end

      private

      def relay_folder
        @relay_folder ||= Dir.mktmpdir.tap { |path| cleanups.unshift(-> { FileUtils.rm_rf(path) }) }
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::RelayProcesses }
