# frozen_string_literal: true

require_relative "../amqp"

module AceMQ
  module Rails
    # Whether the broker can be used, for a page or a readiness probe. Not for a liveness probe: restarting a process
    # mends no broker.
    module Health
      class << self
        # @param connection [AceMQ::AMQP::Connection]
        # @return [AceMQ::AMQP::Health::Report]
        def of(connection)
          AMQP::Health.of(connection)
        end

        # For {AceMQ::AMQP::Health.aggregate}, beside those of other connections.
        #
        # @param name [String]
        # @param connection [AceMQ::AMQP::Connection, nil] that of the process, as it is when the check runs, when nil
        # @return [AceMQ::AMQP::Health::Check]
        def check(name = "acemq", connection = nil)
          AMQP::Health::Check.new(name, connection || -> { AceMQ::Rails.connection })
        end
      end
    end
  end
end
