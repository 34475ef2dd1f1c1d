# frozen_string_literal: true

require_relative "../../accepted_keywords"
require_relative "blame"
require_relative "outcomes"
require_relative "wire"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Publishing over any object with the family's `publish`, one record at a time: it returns when the
        # message is confirmed and raises when it is not. It is sent only the keywords that it takes.
        class PlainPublishing
          # @param transport [#publish]
          # @param options [Options]
          def initialize(transport, options)
            @transport = transport
            @wire = Wire.new(options.mandatory)
          end

          # @return [Integer] how many records are handed over together
          def at_once
            1
          end

          # @param records [Array<OutboxRecord>]
          # @param outcomes [Outcomes] told of each record
          def publish(records, outcomes, **)
            records.each { |record| outcomes.note(record, publish_one(record)) }
          end

          private

          def publish_one(record)
            AcceptedKeywords.call(@transport, :publish, **@wire.plain_message(record))
            Outcomes::CONFIRMED
          rescue StandardError => e
            Blame.of(e, record, @transport)
          end
        end
      end
    end
  end
end
