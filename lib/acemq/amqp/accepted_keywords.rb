# frozen_string_literal: true

module AceMQ
  module AMQP
    # Calls methods of transports that an application wrote itself, perhaps years
    # ago: a keyword that its method does not have is left out.
    #
    # @api private
    module AcceptedKeywords
      class << self
        # @param receiver [Object]
        # @param name [Symbol] the method
        # @return [Object] what the method returns
        def call(receiver, name, *arguments, **keywords, &block)
          receiver.public_send(name, *arguments, **of(receiver.method(name), keywords), &block)
        end

        # @param callable [Method, Proc]
        # @param keywords [Hash{Symbol => Object}]
        # @return [Hash{Symbol => Object}] those that it takes
        def of(callable, keywords)
          parameters = callable.parameters
          return keywords if parameters.any? { |kind, _| %i[keyrest rest].include?(kind) }

          names = parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) }
          keywords.slice(*names)
        end
      end
    end
  end
end
