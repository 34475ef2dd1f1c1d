# frozen_string_literal: true

require "json"
require "net/http"
require "uri"

module AceMQ
  module Operations
    class Doctor
      # The HTTP API of the broker's management plugin.
      class ManagementAPI
        # Seconds for each answer.
        TIMEOUT = 5

        # The plugin did not answer, or not what it was asked.
        class Refused < StandardError; end

        # It answered that its user may not ask this.
        class Forbidden < Refused; end

        # What there is to rescue.
        FAILURES = [Refused, SystemCallError, SocketError, Timeout::Error, OpenSSL::SSL::SSLError, IOError].freeze

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
        def initialize(address)
          @base = address
        end

        # @return [String] without user and password
        def place
          "#{@base.host}:#{@base.port}"
        end

        # @return [String, nil] who asks
        def user
          @base.user && URI.decode_www_form_component(@base.user)
        end

        # @param path [Array<String>] each part as it is
        # @return [Object, nil] nil for what is not there
        # @raise [StandardError] one of {FAILURES}
        def get(*path)
          uri = @base.dup
          uri.path = "/api/#{path.map { |part| URI.encode_www_form_component(part).gsub("+", "%20") }.join("/")}"
          read(ask(uri))
        end

        private

        def ask(uri)
          request = Net::HTTP::Get.new(uri)
          request.basic_auth(user, URI.decode_www_form_component(@base.password.to_s)) if user
          Net::HTTP.start(uri.host, uri.port, use_ssl: uri.is_a?(URI::HTTPS), open_timeout: TIMEOUT, read_timeout: TIMEOUT) do |http|
            http.request(request)
          end
        end

        def read(answer)
          case answer
          when Net::HTTPSuccess then JSON.parse(answer.body)
          when Net::HTTPNotFound then nil
          when Net::HTTPUnauthorized, Net::HTTPForbidden then raise Forbidden, "HTTP #{answer.code}"
          else raise Refused, "HTTP #{answer.code}"
          end
        rescue JSON::ParserError
          raise Refused, "what answers there is not the management plugin"
        end
      end
    end
  end
end
