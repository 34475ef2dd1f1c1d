# frozen_string_literal: true

require_relative "../native"
require_relative "credentials"
require_relative "errors"
require_relative "security"

module AceMQ
  module AMQP
    # The keywords of {Transport#initialize}, checked, and as the extension takes them.
    #
    # @api private
    class TransportOptions
      DEFAULT_CONFIRM_TIMEOUT = 10.0
      DEFAULT_MAX_OUTSTANDING_PUBLISHES = 1000

      DEFAULTS = { heartbeat: :server, connection_timeout: nil, confirm_timeout: DEFAULT_CONFIRM_TIMEOUT, security: nil,
                   credentials: nil, client_name: nil,
                   max_outstanding_publishes: DEFAULT_MAX_OUTSTANDING_PUBLISHES }.freeze

      # @return [Float] seconds
      attr_reader :confirm_timeout
      # @return [Integer]
      attr_reader :max_outstanding_publishes
      # @return [String] the URL without its password
      attr_reader :location

      # @raise [ConfigurationError]
      def initialize(url, **options)
        known!(options)
        @options = DEFAULTS.merge(options)
        raise ConfigurationError, "the broker URL must be a String, not #{url.class}" unless url.is_a?(String)

        @location = Native.check_url(url)
        @tls = url.start_with?("amqps://")
        @confirm_timeout = seconds(:confirm_timeout)
        @max_outstanding_publishes = count(:max_outstanding_publishes)
      end

      # @return [Hash] for Native::Client
      def native
        user, password = login
        { connection_timeout: @options[:connection_timeout] && seconds(:connection_timeout), heartbeat: heartbeat,
          username: user, password: password, client_name: @options[:client_name]&.to_s, tls: tls,
          answer_timeout: confirm_timeout }
      end

      private

      def known!(options)
        unknown = options.keys - DEFAULTS.keys
        return if unknown.empty?

        raise ConfigurationError, "unknown transport option #{unknown.join(", ")}; there are #{DEFAULTS.keys.join(", ")}"
      end

      def seconds(name)
        value = @options[name]
        return value.to_f if value.is_a?(Numeric) && value.real? && value.positive? && value.to_f.finite?

        raise ConfigurationError, "#{name} must be seconds, more than 0, not #{value.inspect}"
      end

      def count(name)
        value = @options[name]
        return value if value.is_a?(Integer) && value.positive?

        raise ConfigurationError, "#{name} must be a whole number, 1 or more, not #{value.inspect}"
      end

      def heartbeat
        value = @options[:heartbeat]
        return if value.nil? || value == :server
        return value if value.is_a?(Integer) && value.between?(1, 65_535)

        raise ConfigurationError, "heartbeat must be :server or seconds from 1 to 65535, not #{value.inspect}"
      end

      # The security's own credentials and the option are the same thing said in two places.
      def login
        given = [@options[:credentials], security&.credentials].compact
        raise ConfigurationError, "credentials are given twice: in credentials: and in security:" if given.size > 1
        return if given.empty?

        check!(:credentials, given.first, Credentials)
        [given.first.username.to_s, given.first.secret]
      end

      def security
        check!(:security, @options[:security], Security) if @options[:security]
        @options[:security]
      end

      def check!(name, value, kind)
        return if value.is_a?(kind)

        raise ConfigurationError, "#{name} must be a #{kind.name}, not a #{value.class}"
      end

      def tls
        return if security.nil?

        if security.tls? != @tls
          raise ConfigurationError, "security: says #{security.mode} but the URL begins with #{@tls ? "amqps" : "amqp"}://; " \
                                    "TLS takes amqps://, and no TLS amqp://"
        end
        return unless @tls

        { authority: security.certificate_authority, certificate: security.certificate, key: security.key,
          unverified: !security.verify? }
      end
    end
  end
end
