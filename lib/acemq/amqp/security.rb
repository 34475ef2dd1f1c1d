# frozen_string_literal: true

require_relative "credentials"
require_relative "errors"

module AceMQ
  module AMQP
    # Whom the connection trusts, and how it identifies itself. An `amqps://` URL
    # without any of this is verified against the system's certificate store.
    class Security
      PEM = /-----BEGIN /

      # @return [Symbol] `:verified`, `:unverified` or `:disabled`
      attr_reader :mode
      # @return [String, nil] PEM of the authorities that are trusted besides the system's
      attr_reader :certificate_authority
      # @return [String, nil] PEM of the client's certificate chain
      attr_reader :certificate
      # @return [Credentials, nil]
      attr_reader :credentials
      # @return [String, nil] why the broker is not verified
      attr_reader :reason

      class << self
        # @param certificate_authority [String, Pathname, nil] a path, or PEM text
        # @param certificate [String, Pathname, nil] of the client; a path, or PEM text
        # @param key [String, Pathname, nil] of the client; a path, or PEM text
        # @param credentials [Credentials, nil]
        # @return [Security]
        # @raise [ConfigurationError] for what cannot be read, or a certificate without its key
        def verified(certificate_authority: nil, certificate: nil, key: nil, credentials: nil)
          new(:verified, certificate_authority: certificate_authority, certificate: certificate, key: key,
                         credentials: credentials)
        end

        # No TLS.
        # @return [Security]
        def disabled
          new(:disabled)
        end

        # TLS that anybody on the way can read: the broker's certificate is not checked.
        #
        # @param because [String] the reason, for whoever reads the setting
        # @return [Security]
        # @raise [ConfigurationError] without a reason
        def without_verifying_the_broker(because:)
          if because.to_s.strip.empty?
            raise ConfigurationError, "say why the broker is not verified: without_verifying_the_broker(because: ...)"
          end

          new(:unverified, reason: because.to_s)
        end

        private :new
      end

      # @api private
      def initialize(mode, certificate_authority: nil, certificate: nil, key: nil, credentials: nil, reason: nil)
        @mode = mode
        @certificate_authority = pem(certificate_authority, "certificate_authority")
        @certificate = pem(certificate, "certificate")
        text = pem(key, "key")
        @key = -> { text }
        @credentials = credentials
        @reason = reason
        check_pair
        freeze
      end

      # @return [String, nil] PEM of the client's private key
      def key
        @key.call
      end

      # @return [Boolean] whether TLS is used
      def tls?
        mode != :disabled
      end

      # @return [Boolean] whether the broker's certificate is checked
      def verify?
        mode == :verified
      end

      # @return [String]
      def inspect
        parts = { authority: certificate_authority, client_certificate: certificate }.compact.keys
        "#<#{self.class} #{[mode, *parts, reason&.inspect].compact.join(" ")}>"
      end
      alias to_s inspect

      private

      def check_pair
        return if certificate.nil? == key.nil?

        given, missing = certificate ? %w[certificate key] : %w[key certificate]
        raise ConfigurationError, "#{given} is given without #{missing}: a client proves itself with both"
      end

      def pem(value, name)
        return if value.nil?

        text = value.to_s.match?(PEM) ? value.to_s : File.read(value)
        return text.freeze if text.match?(PEM)

        raise ConfigurationError, "#{name} is no PEM file: #{value}"
      rescue SystemCallError => e
        raise ConfigurationError, "#{name} cannot be read: #{e.message}"
      end
    end
  end
end
