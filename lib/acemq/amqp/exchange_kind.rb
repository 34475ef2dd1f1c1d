# frozen_string_literal: true

module AceMQ
  module AMQP
    # What an exchange does with a message.
    module ExchangeKind
      # What the broker has built in; others come with plugins and start with "x-".
      ALL = %w[direct fanout topic headers].freeze

      # @param kind [String, Symbol]
      # @param exchange [String] its name, for the error
      # @return [String] the kind
      # @raise [ArgumentError] for one that no broker has
      def self.check!(kind, exchange)
        text = kind.to_s
        return text if ALL.include?(text) || text.match?(/\Ax-./)

        raise ArgumentError, "exchange #{exchange.inspect} cannot be of kind #{kind.inspect}: there are #{ALL.join(", ")}, " \
                             "and those of plugins, which start with x-"
      end
    end
  end
end
