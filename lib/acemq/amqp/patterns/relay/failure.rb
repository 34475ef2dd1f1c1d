# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Why a record was not confirmed, and whose fault it is.
        #
        # @!attribute error     [Exception]
        # @!attribute scope     [Symbol] :record, :destination, :connection, :store, or :unsent: nothing was written,
        #   and why is known from another failure, or from none
        # @!attribute permanent [Boolean] sending it again cannot help
        # @!attribute record    [OutboxRecord, nil] nil when the failure is nobody's in particular
        Failure = Struct.new(:error, :scope, :permanent, :record, keyword_init: true) do
          # What a store keeps as `last_error`: readable characters, whatever the error carries, because a
          # reason that the database refuses leaves the row leased without one.
          #
          # @return [String]
          def reason
            text = error.message.to_s
            text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
            text = text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub.delete("\0").strip
            text.empty? ? error.class.to_s : text
          rescue StandardError
            error.class.to_s
          end

          def exchange
            record ? record.exchange.to_s : ""
          end

          def routing_key
            record ? record.routing_key.to_s : ""
          end
        end
      end
    end
  end
end
