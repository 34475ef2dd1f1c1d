# frozen_string_literal: true

require_relative "../codec"
require_relative "../consume_context"
require_relative "../envelope"
require_relative "../message"
require_relative "../notifications"
require_relative "../tracing"

module AceMQ
  module AMQP
    module Consuming
      # What all deliveries of a consumer have in common on their way to its handler.
      #
      # @api private
      Desk = Struct.new(:queue, :decoder, :handler, :judge, :interceptors, keyword_init: true)

      # One delivery and its handler, up to the decision.
      #
      # @api private
      class Work
        # The process is to end, or cannot go on: not the message's failure.
        FATAL = [SystemExit, SignalException, NoMemoryError].freeze

        class << self
          # @param delivery [Delivery]
          # @return [Envelope] of whatever was received
          def envelope(delivery)
            Envelope.from_headers(delivery.headers, delivery.routing_key, message_id: delivery.message_id)
          rescue ArgumentError
            # Of a transport that lets anything through; such a message can be handled and set aside all the same.
            Envelope.from_headers({})
          end
        end

        # @param desk [Desk]
        # @param original [Original]
        # @yieldparam settlement [Settlement] as soon as it is decided
        def initialize(desk, original, &decided)
          @desk = desk
          @original = original
          @decided = decided
        end

        # @return [Settlement]
        def settlement
          Tracing.handling(delivery.headers, queue: @desk.queue, id: envelope.id) do
            Notifications.around(:handle, queue: @desk.queue, id: envelope.id, type: envelope.type, attempt: envelope.attempt) do |told|
              decision.tap { |settlement| told[:outcome] = settlement.outcome if told }
            end
          end
        end

        private

        def decision
          payload = @desk.decoder.call(delivery.body, delivery.content_type)
        rescue DecodeError => e
          judged(context(nil), @desk.judge.undecodable(e), Ack.park(e), e)
        rescue *FATAL
          raise
        rescue Exception => e # rubocop:disable Lint/RescueException -- a codec is the application's, as a handler is
          failed(context(nil), e)
        else
          handled(payload)
        end

        def delivery
          @original.delivery
        end

        def envelope
          @original.envelope
        end

        def handled(payload)
          context = context(payload)
          answer = @desk.judge.ack(answer(context, payload))
        rescue *FATAL
          raise
        rescue Exception => e # rubocop:disable Lint/RescueException -- a missing file or a deep recursion is a failure too
          failed(context, e)
        else
          judged(context, @desk.judge.settlement(answer, envelope), answer)
        end

        def answer(context, payload)
          @desk.interceptors.before(:before_handle, context) if context
          @desk.handler.call(message(payload, context ? context.envelope : envelope))
        end

        def failed(context, error)
          answer = @desk.judge.answer_to(error)
          judged(context, @desk.judge.settlement(answer, envelope), answer, error)
        end

        def judged(context, settlement, answer, error = nil)
          @decided.call(settlement)
          if context
            context.settlement = settlement
            @desk.interceptors.after(:on_error, context, error, side: :consume) if error
            @desk.interceptors.after(:after_handle, context, answer)
          end
          settlement
        end

        def context(payload)
          return unless @desk.interceptors.consume?

          ConsumeContext.new(queue: @desk.queue, payload: payload, delivery: delivery, envelope: envelope)
        end

        # Member by member, which takes a fifth of the time of keywords.
        def message(payload, envelope)
          message = Message.new
          message.payload = payload
          message.envelope = envelope
          message.routing_key = delivery.routing_key
          message.content_type = delivery.content_type
          message.redelivered = delivery.redelivered
          message.body = delivery.body
          message.reply_to = delivery.reply_to
          message
        end
      end
    end
  end
end
