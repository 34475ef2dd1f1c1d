# frozen_string_literal: true

require_relative "../../log"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # The application's `on_error`: one argument, or the destination by keywords too if it declares any.
        class ErrorCallback
          KEYWORDS = %i[exchange routing_key].freeze

          # @param callable [#call, nil] without one, failures are logged
          # @raise [ArgumentError] when it cannot be called
          def initialize(callable)
            unless callable.nil? || callable.respond_to?(:call)
              raise ArgumentError, "on_error: must answer call(error), not be #{callable.inspect}"
            end

            @callable = callable
            @keywords = callable ? declared(parameters(callable)) : []
          end

          # A callback that raises is told to the log: it must not end the thread that has to go on publishing.
          #
          # @param failure [Failure]
          def call(failure)
            return Log.error(said(failure)) unless @callable

            @callable.call(failure.error, **destination(failure))
          rescue SystemExit
            raise
          rescue Exception => e # rubocop:disable Lint/RescueException -- NotImplementedError and its like too
            Log.error("the outbox relay's on_error raised #{e.class}: #{e.message}; it was told of: #{said(failure)}")
          end

          private

          def parameters(callable)
            callable.respond_to?(:parameters) ? callable.parameters : callable.method(:call).parameters
          end

          def declared(parameters)
            return KEYWORDS if parameters.any? { |kind, _| kind == :keyrest }

            parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) } & KEYWORDS
          end

          def destination(failure)
            { exchange: failure.exchange, routing_key: failure.routing_key }.slice(*@keywords)
          end

          def said(failure)
            where = failure.record ? " (#{failure.record})" : ""
            "outbox relay: #{failure.reason}#{where}"
          end
        end
      end
    end
  end
end
