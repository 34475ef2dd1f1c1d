# frozen_string_literal: true

require_relative "../codec"
require_relative "../composed"
require_relative "../tracing"
require_relative "outbox_record"

module AceMQ
  module AMQP
    module Patterns
      # The times of this process's records: strictly increasing, a microsecond apart at least, so that
      # `(created_at, id)` is insertion order for one writer even when the system's clock stands or steps back.
      #
      # @api private
      module RecordClock
        STEP = Rational(1, 1_000_000)

        @last = Time.at(0)
        @lock = Mutex.new

        # @param now [Time] the system's idea of the time
        # @return [Time] UTC, in whole microseconds: what the databases keep
        def self.tick(now = Time.now)
          @lock.synchronize { @last = [now.floor(6), @last + STEP].max }.getutc
        end
      end

      class << self
        # Renders a message for an outbox, so that it goes out exactly as {Connection#publish} would send it.
        # Dials nothing: only the connection's codec and origin are read.
        #
        # @param connection [#codec, #origin]
        # @param payload [Object] whatever the codec encodes
        # @param to [String] the routing key
        # @param exchange [String] `""` is the default exchange
        # @param envelope [Envelope, nil] a complete envelope, instead of `fields`
        # @param codec [Codec, nil] the connection's own when nil
        # @param fields [Hash] keywords of {Envelope#initialize}: `type:`, `headers:`, `correlation_id:`, ...
        # @return [OutboxRecord]
        # @raise [ArgumentError] for an unknown field, a reserved header, or both an envelope and fields
        # @raise [EncodeError] when the codec cannot encode the payload
        # @example in the transaction that does the work
        #   outbox.add(AceMQ::AMQP::Patterns.record(connection, order.as_json, to: "order.placed", exchange: "shop"))
        def record(connection, payload, to:, exchange: "", envelope: nil, codec: nil, **fields)
          made = Composed.of(payload, to: to, exchange: exchange, codec: codec ? Codec.check!(codec) : connection.codec,
                                      origin: connection.origin, envelope: envelope, fields: fields)
          OutboxRecord.new(id: made.envelope.id, exchange: made.exchange, routing_key: made.routing_key,
                           body: made.body, content_type: made.content_type, headers: Tracing.carried(made.headers),
                           created_at: RecordClock.tick)
        end
      end
    end
  end
end
