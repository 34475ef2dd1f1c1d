# frozen_string_literal: true

require_relative "instrument"
require_relative "plain_publishing"
require_relative "pipelined_publishing"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # The way to the broker: a connection's transport, or a transport itself.
        class Link
          # @param connection [#transport, #publish, #submit]
          # @raise [ArgumentError] when nothing can be published over it
          def initialize(connection)
            @connection = connection
            return if transport.respond_to?(:publish) || transport.respond_to?(:submit)

            raise ArgumentError, "a relay needs a connection or a transport: #{transport.class} does not answer publish"
          end

          # Asked for anew each time: a connection may have been given another one.
          def transport
            @connection.respond_to?(:transport) ? @connection.transport : @connection
          end

          # @return [Boolean] whether the broker was reached
          def connect
            return false unless transport.respond_to?(:connect)

            lost = @dialled_in == Process.pid && !open?
            transport.connect
            @dialled_in = Process.pid
            Instrument.reconnect if lost
            true
          end

          # @return [Boolean] whether there is a live connection; never dials
          def open?
            transport.respond_to?(:open?) ? transport.open? : true
          end

          # @return [String, nil]
          def blocked_reason
            transport.blocked_reason if transport.respond_to?(:blocked_reason)
          rescue StandardError
            nil
          end

          # The native transport calls everything paused that it has not written; of another it is the one sign.
          #
          # @param error [Exception]
          # @return [Boolean] whether it means that the broker takes nothing at present
          def blocked?(error)
            return !blocked_reason.nil? if transport.respond_to?(:submit)

            error.is_a?(PublishingPausedError)
          end

          # @return [PipelinedPublishing, PlainPublishing]
          def publishing(options, shutdown)
            if transport.respond_to?(:submit)
              PipelinedPublishing.new(transport, options, shutdown)
            else
              PlainPublishing.new(transport, options)
            end
          end

          # @param relay [OutboxRelay] to be closed before the connection is
          def register(relay)
            @connection.register(relay) if @connection.respond_to?(:register)
          end

          def unregister(relay)
            @connection.unregister(relay) if @connection.respond_to?(:unregister)
          end
        end
      end
    end
  end
end
