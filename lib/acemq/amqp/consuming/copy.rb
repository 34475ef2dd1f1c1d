# frozen_string_literal: true

require_relative "../accepted_keywords"
require_relative "../headers"
require_relative "error_text"

module AceMQ
  module AMQP
    module Consuming
      # A message on its way to another queue, or back to its own: the same body and properties with other headers.
      #
      # @api private
      class Copy
        # Of the error text, where headers leave no room for more.
        SHORT_ERROR_BYTES = 200

        # @return [Original]
        attr_reader :original
        # @return [String] the queue it goes to
        attr_reader :target
        # @return [Integer] how often it was tried
        attr_reader :tries
        # @return [Boolean] whether somebody else is at the message, and waiting is all that it is here for
        attr_reader :in_progress
        # @return [Float, nil] seconds that it is to wait there before it expires
        attr_reader :rung

        # @param original [Original]
        # @param target [String] a queue
        # @param rung [Float, nil] seconds that it is to wait there before it expires
        # @param in_progress [Boolean]
        # @param changes [Hash] of the envelope
        def initialize(original, target, rung: nil, in_progress: false, **changes)
          @original = original
          @target = target
          @in_progress = in_progress
          @rung = rung
          @headers = headers(original.envelope.with(**changes))
          @tries = 0
        end

        # @param transport [#publish, #publish_copy]
        # @return [void] once the broker has it in the queue
        # @raise [PublishError]
        def publish(transport)
          @tries += 1
          delivery = original.delivery
          if transport.respond_to?(:publish_copy) && delivery.source
            # Who the message is goes along where the property is still free.
            id = delivery.message_id ? nil : message_id(delivery)
            transport.publish_copy(delivery, routing_key: target, headers: @headers, message_id: id, mandatory: true)
          else
            AcceptedKeywords.call(transport, :publish, **parts(delivery))
          end
        end

        # Leaves out what a message with headers as large as a frame has no room for.
        #
        # @return [Boolean] false when that has been done before
        def trim
          return false if @trimmed

          @trimmed = true
          @headers = @headers.slice(Headers::ATTEMPT, Headers::ERROR, *Headers::STALE, Headers::DEATHS)
          error = @headers[Headers::ERROR]
          @headers[Headers::ERROR] = ErrorText.cut(error, SHORT_ERROR_BYTES) if error
          true
        end

        # @param target [String] a queue
        # @return [Copy] of the same message, which does not expire there
        def redirected(target)
          dup.tap do |copy|
            copy.instance_variable_set(:@target, target)
            copy.instance_variable_set(:@rung, nil)
          end
        end

        private

        # What changes; nil takes a header away. Those of the message itself stay as they were received.
        def headers(envelope)
          own = envelope.to_headers.select { |name, _| name.start_with?(Headers::RESERVED_PREFIX) }.except(*Headers::ROUTE)
          stale = rung ? Headers::STALE + [Headers::DEATHS] : Headers::STALE
          stale.each { |name| own[name] = nil if envelope.headers.key?(name) }
          own
        end

        def parts(delivery)
          { exchange: "", routing_key: target, body: delivery.body, content_type: delivery.content_type,
            message_id: message_id(delivery), headers: merged(delivery), persistent: true,
            reply_to: delivery.reply_to, mandatory: true }
        end

        def merged(delivery)
          removed, added = @headers.partition { |_, value| value.nil? }.map(&:to_h)
          (delivery.headers || {}).to_h.transform_keys(&:to_s).except(*removed.keys).merge(added)
        end

        # A foreign producer's id may be longer than the property can be.
        def message_id(delivery)
          id = original.envelope.id
          id.bytesize <= ShortString::MAX_BYTES ? id : delivery.message_id
        end
      end
    end
  end
end
