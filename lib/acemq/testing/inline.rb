# frozen_string_literal: true

require_relative "../rails"
require_relative "hooks"
require_relative "after_commit"

module AceMQ
  module Testing
    # Publishes what is added as soon as its transaction commits, on the same thread: no relay, no waiting.
    #
    # What the transport does not take stays in the outbox, as it would with a relay; {.errors} says why.
    #
    # @api private
    module Inline
      @errors = []

      class << self
        # @return [Array<Exception>] since it was turned on
        attr_reader :errors

        # @return [Object, nil] what {start} was told, while it is on
        attr_reader :connection

        def on?
          !@listener.nil?
        end

        # @param connection [AMQP::Connection, #publish, nil] {AceMQ::Rails.connection} at the moment of publishing when nil
        def start(connection)
          stop
          @connection = connection
          @errors = []
          @listener = Hooks.listen { |store, _| AfterCommit.of(store) { sweep(connection || AceMQ::Rails.connection, store) } }
          nil
        end

        def stop
          Hooks.forget(@listener) if @listener
          @listener = nil
        end

        private

        def sweep(connection, store)
          relay = AMQP::Patterns::OutboxRelay.new(connection, store)
          nil while relay.sweep.positive?
        rescue AMQP::TransportError => e
          @errors << e
        end
      end
    end
  end
end
