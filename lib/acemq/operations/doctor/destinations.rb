# frozen_string_literal: true

module AceMQ
  module Operations
    class Doctor
      # Where rows are addressed, in all outboxes together.
      class Destinations
        include Enumerable

        # @!attribute exchange    [String]
        # @!attribute routing_key [String]
        # @!attribute pending     [Integer] rows still to be published
        # @!attribute mandatory   [Boolean] whether they have to reach a queue
        Destination = Struct.new(:exchange, :routing_key, :pending, :mandatory, keyword_init: true)

        def initialize
          @known = {}
        end

        # @param outbox [Outboxes::Named]
        # @param found [Array<AMQP::Patterns::OutboxDestination>]
        # @return [self]
        def add(outbox, found)
          found.each do |one|
            known = @known[[one.exchange, one.routing_key]] ||= nothing(one)
            known.pending += one.pending
            known.mandatory ||= outbox.mandatory?(one)
          end
          self
        end

        # @yieldparam destination [Destination]
        def each(&block)
          @known.each_value(&block)
        end

        private

        def nothing(one)
          Destination.new(exchange: one.exchange, routing_key: one.routing_key, pending: 0, mandatory: false)
        end
      end
    end
  end
end
