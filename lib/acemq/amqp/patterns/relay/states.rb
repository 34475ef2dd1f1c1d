# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # @!attribute name   [Symbol] :idle, :publishing, :blocked (by the broker), :down (no broker, or no
        #   database), :paused or :closed
        # @!attribute since  [Time]
        # @!attribute reason [String, nil]
        State = Struct.new(:name, :since, :reason, keyword_init: true)

        # What the relay is doing, readable from any thread.
        class States
          # @return [State] frozen
          attr_reader :current

          def initialize(name = :idle)
            enter(name)
          end

          # Keeps `since` when nothing changes.
          def enter(name, reason = nil)
            return if @current && @current.name == name && @current.reason == reason

            since = @current && @current.name == name ? @current.since : Time.now
            @current = State.new(name: name, since: since, reason: reason).freeze
          end

          def blocked?
            current.name == :blocked
          end
        end
      end
    end
  end
end
