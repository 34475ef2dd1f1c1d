# frozen_string_literal: true

require_relative "../log"
require_relative "none"

module AceMQ
  module AMQP
    module Telemetry
      # An observer whose failures stay its own.
      #
      # @api private
      class Guarded
        METHODS = %i[count observe gauge].freeze

        # @param observer [Object, nil]
        # @raise [ArgumentError] when it is no observer
        def initialize(observer)
          missing = observer.nil? ? [] : METHODS.reject { |name| observer.respond_to?(name) }
          unless missing.empty?
            raise ArgumentError, "telemetry: #{observer.class} is no observer: it does not answer #{missing.join(", ")}"
          end

          @observer = observer unless observer.instance_of?(None)
          @told = {}
        end

        # @return [Boolean] whether anybody looks
        def on?
          !@observer.nil?
        end

        def count(metric, delta = 1, **labels)
          guarded(metric) { @observer.count(metric, delta, **labels) } if @observer
        end

        def observe(metric, value, **labels)
          guarded(metric) { @observer.observe(metric, value, **labels) } if @observer
        end

        def gauge(metric, value, **labels)
          guarded(metric) { @observer.gauge(metric, value, **labels) } if @observer
        end

        private

        def guarded(metric)
          yield
          nil
        rescue StandardError => e
          Log.warn("#{@observer.class} does not take #{metric}: #{e.class}: #{e.message}") unless @told[metric]
          @told[metric] = true
          nil
        end
      end
    end
  end
end
