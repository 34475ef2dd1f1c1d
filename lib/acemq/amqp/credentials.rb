# frozen_string_literal: true

require_relative "errors"

module AceMQ
  module AMQP
    # A user and a password, or a token. Prints without either secret.
    class Credentials
      # @return [String, nil] nil for a token
      attr_reader :username

      class << self
        # @param username [String]
        # @param password [String]
        # @return [Credentials]
        def of(username:, password:)
          new(username: username, secret: password)
        end

        # @param token [String] an OAuth 2 access token, sent as the password
        # @return [Credentials]
        def token(token)
          new(username: nil, secret: token)
        end

        # @param username_variable [String]
        # @param password_variable [String]
        # @return [Credentials]
        # @raise [ConfigurationError] naming the variable that is not set
        def from_env(username_variable: "ACEMQ_USERNAME", password_variable: "ACEMQ_PASSWORD")
          username, password = [username_variable, password_variable].map do |name|
            ENV.fetch(name) { raise ConfigurationError, "the environment variable #{name} is not set" }
          end
          of(username: username, password: password)
        end

        # A secret mounted as a file; the newline at its end does not count.
        #
        # @param path [String, Pathname]
        # @param username [String, nil] nil when the file holds a token
        # @return [Credentials]
        # @raise [ConfigurationError] when it cannot be read
        def from_file(path, username: nil)
          new(username: username, secret: File.read(path).chomp)
        rescue SystemCallError => e
          raise ConfigurationError, "the credentials cannot be read: #{e.message}"
        end

        private :new
      end

      # @api private
      def initialize(username:, secret:)
        @username = username&.to_s
        # Kept in a closure: serializers that dump instance variables find nothing.
        text = secret.to_s.dup.freeze
        @secret = -> { text }
        freeze
      end

      # @return [String] the password or the token
      def secret
        @secret.call
      end
      alias password secret

      # @return [Boolean]
      def token?
        username.nil?
      end

      # @return [Boolean] whether there is no secret
      def empty?
        secret.empty?
      end

      # @return [String]
      def to_s
        token? ? "token ***" : "#{username}:***"
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{self}>"
      end
    end
  end
end
