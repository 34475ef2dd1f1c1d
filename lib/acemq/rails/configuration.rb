# frozen_string_literal: true

require_relative "../amqp"
require_relative "broker_url"

module AceMQ
  module Rails
    # What `config.acemq` and `config/acemq.yml` may say. A setting that is nil has its default.
    class Configuration
      DEFAULTS = {
        # The broker, "amqps://..." for TLS; several hosts with commas.
        url: "amqp://guest:guest@localhost:5672",
        # Instead of those in the URL. A token is sent as the password, without a user.
        username: nil,
        password: nil,
        token: nil,
        # Literal, as the broker names it: "/" or "team/a".
        virtual_host: nil,
        # What the broker shows, and the origin of messages; nil is acemq@host.
        client_name: nil,
        # Seconds for TCP, TLS and handshake together; nil is what the URL says, or 10.
        connect_timeout: nil,
        # Seconds, or :server for what the broker proposes.
        heartbeat: :server,
        # Messages that may be unconfirmed at a time; nil is the transport's own default.
        max_outstanding_publishes: nil,
        # Always on; here to refuse `false`, which older configurations may say.
        publisher_confirms: true,
        # The name of a codec, or a codec itself, which wins.
        format: "json",
        codec: nil,
        # An AceMQ::AMQP::Security.
        tls: nil,
        # Whether booting dials, and fails without a broker.
        connect_on_boot: false,
        # Seconds that disconnect! waits.
        shutdown_timeout: 20,
        # Further options of AceMQ::AMQP::Connection.open; they win.
        transport_options: {}.freeze
      }.freeze

      SECRETS = %i[password token].freeze

      DEFAULTS.each_key do |name|
        define_method(name) { @settings.fetch(name, DEFAULTS[name]) }
        define_method(:"#{name}=") { |value| set(name, value) }
      end

      # @param settings [Hash] names as Symbols or Strings, with underscores or dashes
      # @raise [AceMQ::AMQP::ConfigurationError] naming what it does not know, and what it does
      def initialize(settings = {})
        @settings = {}
        add(settings)
      end

      # Adds the settings that have not been made yet: a file's, beside those of Ruby.
      #
      # @param settings [Hash] as for {#initialize}
      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def add(settings)
        named = settings.to_h.transform_keys { |name| symbol(name) }
        refuse_unknown(named.keys - DEFAULTS.keys)
        named.each { |name, value| set(name, value) unless @settings.key?(name) }
        self
      end

      # @param name [Symbol, String]
      # @return [Object]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def [](name)
        refuse_unknown([symbol(name)] - DEFAULTS.keys)
        public_send(symbol(name))
      end

      # @param name [Symbol, String]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def []=(name, value)
        refuse_unknown([symbol(name)] - DEFAULTS.keys)
        set(symbol(name), value)
      end

      # @return [Hash{Symbol => Object}] what has been set, secrets included
      def to_h
        @settings.dup
      end

      # @return [AceMQ::AMQP::Connection] not dialled yet
      # @raise [AceMQ::AMQP::ConfigurationError] for settings that cannot be right
      def build_connection
        AMQP::Connection.lazy(broker_url, **connection_options)
      rescue ArgumentError, AMQP::ConfigurationError => e
        raise AMQP::ConfigurationError, e.message.start_with?("config.acemq") ? e.message : "config.acemq: #{e.message}"
      end

      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError] for what can be known to be wrong without a broker
      def validate!
        build_connection
        self
      end

      # @return [String] without secrets
      def inspect
        shown = @settings.map { |name, value| "#{name}=#{shown(name, value)}" }
        "#<#{[self.class, *shown].join(" ")}>"
      end
      alias to_s inspect

      # A setting that does not exist, by `config.acemq.ulr = ...`.
      def method_missing(name, *arguments)
        return super unless name.end_with?("=") && arguments.one?

        refuse_unknown([name.name.delete_suffix("=").to_sym])
      end

      def respond_to_missing?(_name, _include_private = false)
        false
      end

      private

      def symbol(name)
        name.to_s.tr("-", "_").to_sym
      end

      def set(name, value)
        value.nil? ? @settings.delete(name) : @settings[name] = value
      end

      def refuse_unknown(names)
        return if names.empty?

        raise AMQP::ConfigurationError, "config.acemq has no #{names.sort.join(", ")}; " \
                                        "its settings are #{DEFAULTS.keys.join(", ")}"
      end

      def broker_url
        raise AMQP::ConfigurationError, "config.acemq.url must be a String, not #{url.class}" unless url.is_a?(String)

        virtual_host ? BrokerURL.with_virtual_host(url, virtual_host) : url
      end

      def connection_options
        refuse_without_confirms
        { codec: chosen_codec, origin: client_name, client_name: client_name, credentials: credentials, security: tls,
          connection_timeout: connect_timeout, heartbeat: chosen_heartbeat,
          max_outstanding_publishes: max_outstanding_publishes }
          .compact.merge(transport_options.to_h.transform_keys(&:to_sym))
      end

      def refuse_without_confirms
        return if publisher_confirms == true

        raise AMQP::ConfigurationError, "config.acemq.publisher_confirms cannot be #{publisher_confirms.inspect}: " \
                                        "every publish is confirmed"
      end

      def chosen_codec
        codec || AMQP::Codecs.build(format)
      rescue ArgumentError => e
        raise AMQP::ConfigurationError, "config.acemq.format: #{e.message}"
      end

      # A file can say "server" only as text.
      def chosen_heartbeat
        heartbeat.to_s == "server" ? :server : heartbeat
      end

      def credentials
        given = own_credentials
        return given unless given && tls&.credentials

        raise AMQP::ConfigurationError, "config.acemq has credentials both in tls and beside it; state them once"
      end

      def own_credentials
        return AMQP::Credentials.token(token) if token
        return if username.nil? && password.nil?
        return AMQP::Credentials.of(username: username, password: password) if username && password

        raise AMQP::ConfigurationError, "config.acemq needs username and password together"
      end

      def shown(name, value)
        return "***" if SECRETS.include?(name)

        name == :url ? BrokerURL.redact(value).inspect : value.inspect
      end
    end
  end
end
