# frozen_string_literal: true

require "timeout"
require_relative "failure"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Whose failure an error is. Only one that is the record's own uses up its attempts.
        module Blame
          # What a socket, the system or a clock raises says nothing about the message.
          NOT_THE_MESSAGE = [SystemCallError, IOError, Timeout::Error].freeze
          # The same from libraries that a transport may have loaded.
          NOT_THE_MESSAGE_EITHER = %w[SocketError OpenSSL::SSL::SSLError].freeze

          class << self
            # @param error [Exception] raised by a transport of the application's own
            # @param record [OutboxRecord]
            # @param transport [Object] asked for its opinion when it has one
            # @return [Failure]
            def of(error, record, transport)
              Failure.new(error: error, record: record, scope: scope(error, transport), permanent: permanent?(error))
            end

            # @param error [Exception] an outcome of the native transport, which knows its own errors
            # @param record [OutboxRecord]
            # @return [Failure]
            def of_outcome(error, record)
              Failure.new(error: error, record: record, scope: outcome_scope(error), permanent: permanent?(error))
            end

            # @param record [OutboxRecord] that cannot be made a message
            # @return [Failure]
            def of_unreadable(record)
              error = PublishError.new(record.error || "the outbox record has no body", permanent: true,
                                                                                        exchange: record.exchange,
                                                                                        routing_key: record.routing_key)
              of_outcome(error, record)
            end

            private

            def outcome_scope(error)
              return :unsent if error.is_a?(PublishingPausedError)

              error.respond_to?(:scope) ? error.scope : :connection
            end

            def scope(error, transport)
              return error.scope if error.is_a?(TransportError)
              return :connection if outside?(error) || connection_error?(error, transport)

              :record
            end

            def outside?(error)
              NOT_THE_MESSAGE.any? { |kind| error.is_a?(kind) } ||
                error.class.ancestors.any? { |ancestor| NOT_THE_MESSAGE_EITHER.include?(ancestor.name) }
            end

            def connection_error?(error, transport)
              transport.respond_to?(:connection_error?) && transport.connection_error?(error)
            end

            def permanent?(error)
              error.respond_to?(:permanent?) && error.permanent? ? true : false
            end
          end
        end
      end
    end
  end
end
