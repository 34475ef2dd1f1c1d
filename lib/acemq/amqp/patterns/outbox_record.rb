# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # A message as an outbox holds it: encoded, rendered, ready for the wire.
      #
      # Members are writable, because a record is a value that belongs to whoever holds it.
      #
      # @!attribute id            [String] the message id; on the wire `x-acemq-id` and the `message_id` property
      # @!attribute exchange      [String] the exchange to publish to; `""` is the default exchange
      # @!attribute routing_key   [String]
      # @!attribute body          [String] the encoded bytes
      # @!attribute content_type  [String] what the codec calls its bytes
      # @!attribute headers       [Hash{String => Object}] the headers as they go on the wire, `x-acemq-*` included
      # @!attribute created_at    [Time] orders the outbox
      # @!attribute attempts      [Integer, nil] failures so far, when a store says
      # @!attribute error         [String, nil] why the last attempt failed, when a store says
      OutboxRecord = Struct.new(:id, :exchange, :routing_key, :body, :content_type, :headers, :created_at,
                                :attempts, :error, keyword_init: true) do
        # The body stays out: it may be long, binary or confidential, and this text ends up in logs.
        #
        # @return [String]
        def to_s
          target = exchange.to_s.empty? ? "the default exchange" : exchange
          "outbox record #{id} for #{routing_key.inspect} on #{target} (#{body.to_s.bytesize} bytes)"
        end

        # @return [String]
        def inspect
          shown = (members - %i[body headers]).map { |name| "#{name}=#{self[name].inspect}" }
          "#<#{self.class.name} #{shown.join(" ")} body=(#{body.to_s.bytesize} bytes)>"
        end

        # `pp` and RSpec's diffs walk a Struct's members instead of asking `inspect`.
        def pretty_print(printer)
          printer.text(inspect)
        end
      end
    end
  end
end
