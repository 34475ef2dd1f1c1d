# frozen_string_literal: true

require_relative "accepted_keywords"
require_relative "codec"
require_relative "composed"
require_relative "errors"
require_relative "publish_context"
require_relative "short_string"
require_relative "telemetry"
require_relative "unconfirmed"

module AceMQ
  module AMQP
    # The messages of one publish: past the interceptors, encoded, sent, counted.
    #
    # @api private
    class Posting
      # @param connection [Connection]
      # @param codec [Object, nil] instead of the connection's
      # @param persistent [Boolean]
      def initialize(connection, codec:, persistent:)
        @connection = connection
        @codec = codec ? Codec.check!(codec) : connection.codec
        @persistent = persistent ? true : false
        @interceptors = connection.interceptors if connection.interceptors.publish?
        @contexts = []
        @composed = []
        @messages = []
      end

      # Makes one more message ready. Nothing is sent.
      #
      # @raise [ArgumentError, EncodeError] and what an interceptor raises
      def add(payload, to:, exchange:, envelope:, reply_to:, mandatory:, fields:)
        return compose(payload, to, exchange, envelope, fields, reply_to, mandatory) unless @interceptors

        envelope = Composed.complete(envelope, fields, ShortString.check!(to, "the routing key (to:)"), @connection.origin)
        context = PublishContext.new(exchange: exchange, routing_key: to, envelope: envelope, payload: payload,
                                     reply_to: reply_to, mandatory: mandatory)
        @interceptors.before(:before_publish, context)
        @contexts << context
        compose(context.payload, context.routing_key, context.exchange, context.envelope, {}, context.reply_to,
                context.mandatory)
      end

      # @return [Envelope] as it was sent
      # @raise [PublishError]
      def send_one
        AcceptedKeywords.call(transport, :publish, **@messages.first)
      rescue StandardError => e
        concluded([e])
        raise
      else
        concluded([nil])
        @composed.first.envelope
      end

      # @return [Array<Envelope>]
      # @raise [PublishError] one for all that failed
      def send_all
        outcomes = @messages.empty? ? [] : outcomes()
        concluded(outcomes)
        failure = Unconfirmed.error(outcomes)
        raise failure if failure

        @composed.map(&:envelope)
      end

      private

      def transport
        @connection.transport
      end

      # rubocop:disable Metrics/ParameterLists -- one message
      def compose(payload, to, exchange, envelope, fields, reply_to, mandatory)
        composed = Composed.of(payload, to: to, exchange: exchange, codec: @codec, origin: @connection.origin,
                                        envelope: envelope, fields: fields)
        @composed << composed
        @messages << { exchange: composed.exchange, routing_key: composed.routing_key, body: composed.body,
                       content_type: composed.content_type, message_id: composed.envelope.id, headers: composed.headers,
                       persistent: @persistent, reply_to: reply_address(reply_to), mandatory: mandatory ? true : false }
      end
      # rubocop:enable Metrics/ParameterLists

      # A blank address would be sent, and answered to nowhere.
      def reply_address(reply_to)
        address = ShortString.check!(reply_to, "reply_to")
        address unless address.empty?
      end

      def outcomes
        return transport.publish_all(@messages) if transport.respond_to?(:publish_all)

        @messages.map do |message|
          AcceptedKeywords.call(transport, :publish, **message)
        rescue TransportError => e
          e
        end
      end

      def concluded(outcomes)
        count(outcomes) if @connection.meter.on?
        return unless @interceptors

        @contexts.zip(outcomes).each do |context, outcome|
          if outcome.is_a?(Exception)
            @interceptors.after(:on_error, context, outcome, side: :publish)
          else
            @interceptors.after(:after_confirm, context)
          end
        end
      end

      def count(outcomes)
        @composed.zip(outcomes).each do |composed, outcome|
          @connection.meter.count(Telemetry::PUBLISH_TOTAL, exchange: composed.exchange, outcome: outcome_name(outcome))
        end
      end

      def outcome_name(outcome)
        case outcome
        when PublishingPausedError then "refused"
        when PublishError then outcome.unroutable? ? "unroutable" : "failed"
        when Exception then "failed"
        else "confirmed"
        end
      end
    end
  end
end
