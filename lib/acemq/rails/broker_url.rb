# frozen_string_literal: true

require "erb"
require_relative "../amqp/errors"

module AceMQ
  module Rails
    # The two things a configuration does to a URL; reading it is the transport's business.
    #
    # @api private
    module BrokerURL
      # A host list is not a URI by the book, so no parser is asked.
      PARTS = %r{\A(?<head>[a-z]+://[^/?#]*)(?<path>/[^?#]*)?(?<query>\?.*)?\z}mi

      class << self
        # @param url [String]
        # @param name [String] as the broker names it
        # @return [String]
        # @raise [AceMQ::AMQP::ConfigurationError] when the URL names another one already
        def with_virtual_host(url, name)
          parts = PARTS.match(url)
          raise AMQP::ConfigurationError, "config.acemq.url is no broker URL: #{redact(url)}" unless parts

          path = "/#{ERB::Util.url_encode(name.to_s)}"
          unless [nil, "/", path].include?(parts[:path])
            raise AMQP::ConfigurationError, "config.acemq names a virtual host in url and another in virtual_host"
          end

          "#{parts[:head]}#{path}#{parts[:query]}"
        end

        # @return [String] without what stands before the last "@"
        def redact(url)
          url.to_s.sub(%r{\A([a-z]+://)?.*@}mi, "\\1***@")
        end
      end
    end
  end
end
