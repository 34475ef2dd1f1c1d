# frozen_string_literal: true

module AceMQ
  module AMQP
    module Telemetry
      # An observer that looks away.
      class None
        def count(_metric, _delta = 1, **); end

        def observe(_metric, _value, **); end

        def gauge(_metric, _value, **); end
      end
    end
  end
end
