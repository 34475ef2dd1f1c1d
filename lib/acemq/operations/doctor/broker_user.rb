# frozen_string_literal: true

require "uri"

module AceMQ
  module Operations
    class Doctor
      # Whom the application is to the broker, as its URL says.
      BrokerUser = Struct.new(:user, :virtual_host) do
        # @param config [AceMQ::Rails::Configuration]
        # @return [BrokerUser]
        def self.of(config)
          parts = %r{\A[a-z]+://(?:(?<user>[^:@/]*)(?::[^@]*)?@)?[^/?]*(?:/(?<host>[^?]*))?}i.match(config.url.to_s)
          decode = ->(text) { URI.decode_www_form_component(text.to_s.gsub("+", "%2B")) }
          host = config.virtual_host || decode.call(parts && parts[:host])
          new(config.username || decode.call((parts && parts[:user]) || "guest"), host.empty? ? "/" : host)
        end
      end
    end
  end
end
