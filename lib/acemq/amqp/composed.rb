# frozen_string_literal: true

require_relative "codec"
require_relative "envelope"
require_relative "headers"
require_relative "short_string"

module AceMQ
  module AMQP
    # A payload made ready for the wire. A direct publish and an outbox record are
    # both made here, which is why nobody can tell their messages apart.
    #
    # @!attribute envelope [Envelope] as it is sent
    # @!attribute exchange [String]
    # @!attribute routing_key [String]
    # @!attribute body [String]
    # @!attribute content_type [String]
    # @!attribute headers [Hash{String => Object}] the envelope's, rendered
    #
    # @api private
    Composed = Struct.new(:envelope, :exchange, :routing_key, :body, :content_type, :headers, keyword_init: true) do
      class << self
        # @param payload [Object]
        # @param to [String] the routing key
        # @param exchange [String] "" is the default exchange
        # @param codec [Object]
        # @param origin [String] of an envelope that has none
        # @param envelope [Envelope, nil]
        # @param fields [Hash{Symbol => Object}] of the envelope, when none is given
        # @return [Composed]
        # @raise [ArgumentError, EncodeError] for what cannot be carried
        def of(payload, to:, codec:, origin:, exchange: "", envelope: nil, fields: {})
          routing_key = ShortString.check!(to, "the routing key (to:)")
          envelope = complete(envelope, fields, routing_key, origin)
          ShortString.check!(envelope.id, "the message id")
          new(envelope: envelope, exchange: ShortString.check!(exchange, "exchange"), routing_key: routing_key,
              body: Codec.encode(codec, payload),
              content_type: ShortString.check!(codec.content_type, "the codec's content type"),
              headers: Headers.render(envelope.to_headers))
        end

        # What to_headers would fill in, filled in: the envelope that is returned is
        # the one that was sent.
        #
        # @return [Envelope]
        # @raise [ArgumentError]
        def complete(given, fields, routing_key, origin)
          return given_envelope(given, fields, routing_key, origin) if given

          unknown = fields.keys - Envelope::FIELDS
          return Envelope.new(**fields, **absent(fields, routing_key, origin)) if unknown.empty?

          raise ArgumentError, "unknown keyword #{unknown.map(&:inspect).join(", ")}; " \
                               "the envelope's are #{Envelope::FIELDS.join(", ")}"
        end

        private

        def given_envelope(given, fields, routing_key, origin)
          raise ArgumentError, "envelope: must be an Envelope, not #{given.class}" unless given.is_a?(Envelope)
          raise ArgumentError, "give either envelope: or its fields (#{fields.keys.join(", ")})" if fields.any?

          changes = absent({ type: given.type, origin: given.origin }, routing_key, origin)
          changes.empty? ? given : given.with(**changes)
        end

        def absent(fields, routing_key, origin)
          { type: routing_key, origin: origin }.select { |name, _| fields[name].to_s.empty? }
        end
      end
    end
  end
end
