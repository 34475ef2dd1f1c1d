# frozen_string_literal: true

require "json"
require "net/http"
require "uri"
require_relative "bindings"
require_relative "broker_user"
require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # What only the broker's management plugin can tell: its version, what the user may do, and whether a queue is
      # bound for each routing key. It is asked when it is named.
      class Management
        # Seconds for each answer.
        TIMEOUT = 5
        # What permissions call the exchange without a name.
        DEFAULT_EXCHANGE = "amq.default"

        # The plugin did not answer, or not what it was asked.
        class Refused < StandardError; end

        # @param url [String] "http://user:password@host:15672"
        # @return [URI::HTTP]
        # @raise [ArgumentError]
        def self.address(url)
          address = URI.parse(url)
          return address if address.is_a?(URI::HTTP) && address.host

          raise ArgumentError, "the address of the management plugin must be http or https, and name a host"
        rescue URI::InvalidURIError
          raise ArgumentError, "the address of the management plugin is no URL"
        end

        # @param address [URI::HTTP]
        # @param broker [BrokerUser] whom the relay is to the broker, and where
        # @param destinations [Array<AMQP::Patterns::OutboxDestination>]
        def initialize(address, broker, destinations)
          @base = address
          @broker = broker
          @destinations = destinations
        end

        # @return [Array<Finding>]
        def examine
          [version, *permissions, *bindings]
        rescue Refused, SystemCallError, SocketError, Timeout::Error, OpenSSL::SSL::SSLError, IOError => e
          [Finding.warning("management", "#{@base.host}:#{@base.port} does not answer: #{e.message}",
                           "see whether the plugin rabbitmq_management is enabled, and whether its user has the tag monitoring")]
        end

        private

        def version
          about = get("overview")
          Finding.ok("broker", "RabbitMQ #{about["rabbitmq_version"]}, Erlang #{about["erlang_version"]}")
        end

        def permissions
          allowed = get("permissions", @broker.virtual_host, @broker.user)
          return [nobody] unless allowed

          exchanges.map { |exchange| permission(exchange, Regexp.new(allowed["write"])) }
        end

        def nobody
          Finding.error("permissions", "#{@broker.user} has none in the virtual host #{@broker.virtual_host}",
                        "rabbitmqctl set_permissions -p #{@broker.virtual_host} #{@broker.user} '' '.*' ''")
        end

        def permission(exchange, writable)
          name = exchange.empty? ? DEFAULT_EXCHANGE : exchange
          return Finding.ok("permissions", "#{@broker.user} may publish to #{name}") if writable.match?(name)

          Finding.error("permissions", "#{@broker.user} may not publish to #{name}: its permission to write is #{writable.source.inspect}",
                        "rabbitmqctl set_permissions -p #{@broker.virtual_host} #{@broker.user} with a pattern that #{name} meets")
        end

        def exchanges
          @destinations.map(&:exchange).uniq
        end

        def bindings
          @destinations.reject { |one| one.exchange.empty? }.group_by(&:exchange).flat_map do |name, found|
            exchange = get("exchanges", @broker.virtual_host, name)
            next [] unless exchange # which has been said

            bound = Bindings.new(exchange, get("exchanges", @broker.virtual_host, name, "bindings", "source") || [])
            found.map { |one| binding(one, bound) }
          end
        end

        def binding(one, bound)
          subject = "destination #{one.exchange}/#{one.routing_key}"
          return Finding.ok(subject, "reaches #{bound.shown(one.routing_key)}") if bound.for?(one.routing_key)

          Finding.error(subject, "no queue is bound for it", "bind one; or, if nobody need consume these events, tell the relay so: " \
                                                             "mandatory: [#{one.exchange.inspect}]")
        end

        # @return [Object, nil] nil for what is not there
        def get(*path)
          uri = @base.dup
          uri.path = "/api/#{path.map { |part| URI.encode_www_form_component(part).gsub("+", "%20") }.join("/")}"
          answer = ask(uri)
          return if answer.is_a?(Net::HTTPNotFound)
          raise Refused, "HTTP #{answer.code}" unless answer.is_a?(Net::HTTPSuccess)

          JSON.parse(answer.body)
        rescue JSON::ParserError
          raise Refused, "what answers there is not the management plugin"
        end

        def ask(uri)
          request = Net::HTTP::Get.new(uri)
          request.basic_auth(URI.decode_www_form_component(@base.user), URI.decode_www_form_component(@base.password.to_s)) if @base.user
          Net::HTTP.start(uri.host, uri.port, use_ssl: uri.is_a?(URI::HTTPS), open_timeout: TIMEOUT, read_timeout: TIMEOUT) do |http|
            http.request(request)
          end
        end
      end
    end
  end
end
