# frozen_string_literal: true

require_relative "bindings"
require_relative "finding"
require_relative "management_api"

module AceMQ
  module Operations
    class Doctor
      # Whether a queue is bound for each routing key.
      class Routes
        ALTERNATE = "alternate-exchange"

        # @param api [ManagementAPI]
        # @param virtual_host [String]
        # @param destinations [Enumerable<Destinations::Destination>]
        def initialize(api, virtual_host, destinations)
          @api = api
          @virtual_host = virtual_host
          @destinations = destinations
        end

        # @return [Array<Finding>]
        # @raise [StandardError] one of {ManagementAPI::FAILURES}
        def examine
          @destinations.reject { |one| one.exchange.empty? }.group_by(&:exchange).flat_map { |name, found| of_exchange(name, found) }
        rescue ManagementAPI::Forbidden => e
          [Finding.warning("destinations", "could not be looked at (#{e.message}): #{@api.user} has no permission in the virtual host " \
                                           "#{@virtual_host}",
                           "rabbitmqctl set_permissions -p #{@virtual_host} #{@api.user} '' '' '', which lets it look")]
        end

        private

        def of_exchange(name, found)
          exchange = @api.get("exchanges", @virtual_host, name) or return [] # which has been said
          alternate, secret = alternate(exchange)
          bound = @api.get("exchanges", @virtual_host, name, "bindings", "source") || []
          bindings = Bindings.new(exchange["type"], bound, alternate)
          found.map { |one| finding(one, bindings, secret) }
        end

        # An argument counts before a policy.
        #
        # @return [Array(String, String)] its name; that of a policy which may name one, and which this user may not see
        def alternate(exchange)
          given = exchange.dig("arguments", ALTERNATE)
          policy = exchange["policy"]
          return [given, nil] if given || policy.nil?

          [@api.get("policies", @virtual_host, policy)&.dig("definition", ALTERNATE), nil]
        rescue ManagementAPI::Forbidden
          [nil, policy]
        end

        def finding(one, bindings, secret)
          subject = "destination #{one.exchange}/#{one.routing_key}"
          return Finding.ok(subject, "reaches #{bindings.shown(one.routing_key)}") if bindings.for?(one.routing_key)
          return Finding.ok(subject, "no queue is bound for it, and the relay is told that none need be") unless one.mandatory

          unbound(subject, one, secret)
        end

        # Wrong only where something waits for it: rows that went out long ago had their queue.
        def unbound(subject, one, secret)
          known = one.pending.positive? && secret.nil?
          remedy = "bind one; or, if nobody need consume these events, tell the relay so: mandatory: [#{one.exchange.inspect}]"
          Finding.new(subject: subject, verdict: known ? :error : :warning, text: "no queue is bound for it#{reservation(one, secret)}",
                      remedy: remedy)
        end

        def reservation(one, secret)
          return ", unless the policy #{secret}, which users with the tag policymaker see, names an alternate exchange" if secret

          "; nothing waits for it now" if one.pending.zero?
        end
      end
    end
  end
end
