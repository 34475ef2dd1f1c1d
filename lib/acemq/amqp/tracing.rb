# frozen_string_literal: true

module AceMQ
  module AMQP
    # The trace that a message belongs to, where the application has loaded OpenTelemetry: taken along in the message's
    # headers (`traceparent`, `tracestate`) when it is recorded, and linked to by the spans that publish and handle it.
    # They are linked and not children, because they may come hours later, and a batch has many origins.
    #
    # @api private
    module Tracing
      NAME = "acemq_native"
      HEADER = "traceparent"
      # OpenTelemetry keeps so many links of a span by default.
      LINKS = 128

      class << self
        # @return [Boolean] whether there is somebody to tell
        def on?
          defined?(::OpenTelemetry) && ::OpenTelemetry.respond_to?(:tracer_provider) ? true : false
        end

        # @param headers [Hash] of a message
        # @return [Hash] the same, or one with the present trace added to it
        def carried(headers)
          return headers unless on? && headers.is_a?(Hash) && !headers.key?(HEADER)

          context = {}
          ::OpenTelemetry.propagation.inject(context)
          context.empty? ? headers : headers.merge(context)
        end

        # The span of one handing over, linked to where its messages came from.
        #
        # @param records [Array<Patterns::OutboxRecord>]
        # @return [Object] the block's
        def publishing(records)
          return yield unless on?

          destinations = records.map { |record| "#{record.exchange}/#{record.routing_key}" }.uniq
          span("publish #{destinations.one? ? destinations.first : "outbox"}", :producer, records.map(&:headers),
               "messaging.operation" => "publish", "messaging.batch.message_count" => records.size) { yield }
        end

        # The span of one message's handler.
        #
        # @param headers [Hash, nil] as received
        # @return [Object] the block's
        def handling(headers, queue:, id:)
          return yield unless on?

          span("process #{queue}", :consumer, [headers], "messaging.operation" => "process",
                                                         "messaging.source.name" => queue, "messaging.message.id" => id) { yield }
        end

        private

        def span(name, kind, carriers, attributes)
          links = carriers.filter_map { |headers| link(headers) }.first(LINKS)
          tracer = ::OpenTelemetry.tracer_provider.tracer(NAME)
          tracer.in_span(name, attributes: { "messaging.system" => "rabbitmq" }.merge(attributes), links: links, kind: kind) { yield }
        end

        # @return [Object, nil] nil for a message that belongs to no trace
        def link(headers)
          return unless headers.is_a?(Hash) && headers[HEADER]

          origin = ::OpenTelemetry::Trace.current_span(::OpenTelemetry.propagation.extract(headers)).context
          ::OpenTelemetry::Trace::Link.new(origin) if origin.valid?
        end
      end
    end
  end
end
