# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # Rails' logger where there is one, else standard error.
        module Log
          def self.error(text)
            logger = ::Rails.logger if defined?(::Rails) && ::Rails.respond_to?(:logger)
            logger ? logger.error(text) : warn(text)
          end
        end
      end
    end
  end
end
