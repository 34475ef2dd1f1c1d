# frozen_string_literal: true

require_relative "finding"
require_relative "management_api"

module AceMQ
  module Operations
    class Doctor
      # Whether the broker lets the relay publish to the exchanges that rows are addressed to.
      class Permissions
        # What permissions call the exchange without a name.
        DEFAULT_EXCHANGE = "amq.default"
        # How the broker reads a pattern that is empty.
        NOTHING = "^$"

        # @param api [ManagementAPI]
        # @param broker [BrokerUser] whom the relay is to the broker, and where
        # @param exchanges [Array<String>]
        def initialize(api, broker, exchanges)
          @api = api
          @broker = broker
          @exchanges = exchanges
        end

        # @return [Array<Finding>]
        # @raise [StandardError] one of {ManagementAPI::FAILURES}
        def examine
          allowed = @api.get("permissions", @broker.virtual_host, @broker.user) or return [nobody]
          pattern = allowed["write"].to_s
          @exchanges.map { |exchange| permission(exchange.empty? ? DEFAULT_EXCHANGE : exchange, pattern.empty? ? NOTHING : pattern) }
        rescue ManagementAPI::Forbidden => e
          [Finding.warning("permissions", "could not be looked at (#{e.message}): they are shown to users with the tag administrator",
                           "ask as one of them; or nothing, if no destination stands still: last_error of its rows would say so")]
        end

        private

        def nobody
          Finding.error("permissions", "#{@broker.user} has none in the virtual host #{@broker.virtual_host}",
                        "rabbitmqctl set_permissions -p #{@broker.virtual_host} #{@broker.user} '' '.*' ''")
        end

        def permission(name, pattern)
          return Finding.ok("permissions", "#{@broker.user} may publish to #{name}") if Regexp.new(pattern).match?(name)

          Finding.error("permissions", "#{@broker.user} may not publish to #{name}: its permission to write is #{pattern.inspect}",
                        "rabbitmqctl set_permissions -p #{@broker.virtual_host} #{@broker.user} with a pattern that #{name} meets")
        end
      end
    end
  end
end
