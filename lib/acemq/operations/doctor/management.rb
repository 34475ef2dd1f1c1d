# frozen_string_literal: true

require_relative "broker_user"
require_relative "finding"
require_relative "management_api"
require_relative "permissions"
require_relative "routes"

module AceMQ
  module Operations
    class Doctor
      # What only the broker's management plugin can tell: its version, what the user may do, and whether a queue is
      # bound for each routing key. It is asked when it is named.
      class Management
        # @param address [URI::HTTP]
        # @param broker [BrokerUser] whom the relay is to the broker, and where
        # @param destinations [Enumerable<Destinations::Destination>]
        def initialize(address, broker, destinations)
          @api = ManagementAPI.new(address)
          @permissions = Permissions.new(@api, broker, destinations.map(&:exchange).uniq)
          @routes = Routes.new(@api, broker.virtual_host, destinations)
        end

        # @return [Array<Finding>]
        def examine
          findings = []
          findings << version
          findings.concat(@permissions.examine)
          findings.concat(@routes.examine)
        rescue *ManagementAPI::FAILURES => e
          findings << Finding.warning("management", "#{@api.place} does not answer: #{e.message}",
                                      "see whether the plugin rabbitmq_management is enabled, and whether its user has the tag monitoring")
        end

        private

        def version
          about = @api.get("overview") || {}
          Finding.ok("broker", "RabbitMQ #{about["rabbitmq_version"]}, Erlang #{about["erlang_version"]}")
        end
      end
    end
  end
end
