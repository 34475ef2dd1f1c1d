# frozen_string_literal: true

require_relative "../amqp"
require_relative "broker_url"
require_relative "consumer_settings"
require_relative "topology_builder"

module AceMQ
  module Rails
    # What `config.acemq` and `config/acemq.yml` may say. A setting that is nil has its default.
    class Configuration < Settings
      PATH = "config.acemq"

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
        # What counts and measures: answers count, observe and gauge.
        telemetry: nil,
        # What sees every message that is published or handled; one or several.
        interceptors: [].freeze,
        # Exchanges, queues and bindings, see TopologyBuilder.
        topology: {}.freeze,
        # Whether a consumer process declares them before it consumes.
        declare_topology_on_boot: true,
        # Folders of consumer classes beside those that Rails loads from anyway, below the application's root.
        consumer_paths: [].freeze,
        # What consumer classes have that do not say otherwise, see ConsumerSettings.
        consumer: {}.freeze,
        # Whether booting dials, and fails without a broker.
        connect_on_boot: false,
        # Seconds that disconnect! waits.
        shutdown_timeout: 20,
        # Further options of AceMQ::AMQP::Connection.open; they win.
        transport_options: {}.freeze
      }.freeze

      SECRETS = %i[password token].freeze
      # Objects of the application's, which may show anything.
      FOREIGN = %i[codec telemetry interceptors].freeze

      define_settings except: :consumer

      # @param settings [Hash] names as Symbols or Strings, with underscores or dashes
      # @raise [AceMQ::AMQP::ConfigurationError] naming what it does not know, and what it does
      def initialize(settings = {})
        @consumer = ConsumerSettings.new
        super
      end

      # What consumer classes have that do not say otherwise.
      #
      # @return [ConsumerSettings]
      attr_reader :consumer

      # @param settings [Hash] of {ConsumerSettings}; those that it does not name stay as they are
      # @raise [AceMQ::AMQP::ConfigurationError]
      def consumer=(settings)
        settings.to_h.each { |name, value| @consumer[name] = value }
      end

      # Adds the settings that have not been made yet: a file's, beside those of Ruby.
      #
      # @param settings [Hash] as for {#initialize}
      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def add(settings)
        settings = named(settings)
        consumer.add(settings.delete(:consumer))
        super
      end

      # @return [Hash{Symbol => Object}] what has been set, secrets included
      def to_h
        consumer.to_h.empty? ? super : super.merge(consumer: consumer.to_h)
      end

      # @return [AceMQ::AMQP::Connection] not dialled yet
      # @raise [AceMQ::AMQP::ConfigurationError] for settings that cannot be right
      def build_connection
        AMQP::Connection.lazy(broker_url, **connection_options).tap { |connection| intercept(connection) }
      rescue ArgumentError, AMQP::ConfigurationError => e
        raise AMQP::ConfigurationError, e.message.start_with?("config.acemq") ? e.message : "config.acemq: #{e.message}"
      end

      # @return [AceMQ::AMQP::Topology]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def build_topology
        TopologyBuilder.new(topology, defaults: consumer).build
      end

      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError] for what can be known to be wrong without a broker
      def validate!
        consumer.validate!
        %i[connect_on_boot declare_topology_on_boot].each { |name| boolean!(name) }
        %i[transport_options topology].each { |name| table!(name) }
        build_connection
        seconds!(:shutdown_timeout)
        build_topology.validate! unless topology.empty?
        self
      rescue AMQP::TopologyError => e
        raise AMQP::ConfigurationError, "config.acemq.topology: #{e.message}"
      end

      private

      def broker_url
        raise AMQP::ConfigurationError, "config.acemq.url must be a String, not #{url.class}" unless url.is_a?(String)

        virtual_host ? BrokerURL.with_virtual_host(url, virtual_host) : url
      end

      def connection_options
        refuse_without_confirms
        { codec: chosen_codec, origin: client_name, client_name: client_name, credentials: credentials, security: tls,
          connection_timeout: connect_timeout, heartbeat: chosen_heartbeat,
          max_outstanding_publishes: max_outstanding_publishes, telemetry: telemetry }
          .merge(consuming_options)
          .compact.merge(transport_options.to_h.transform_keys(&:to_sym))
      end

      def consuming_options
        made = consumer.to_h
        { prefetch: made[:prefetch], retry_threshold: made[:broker_wait_threshold],
          retry_policy: (consumer.retry_policy if made.key?(:max_attempts)) }
      end

      def intercept(connection)
        [interceptors].flatten(1).each do |interceptor|
          connection.intercept_publish(interceptor)
          connection.intercept_consume(interceptor)
        end
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

      # The text "false", as an environment variable has it, would be taken for true.
      def boolean!(name)
        value = public_send(name)
        return if [true, false].include?(value)

        raise AMQP::ConfigurationError, "#{PATH}.#{name} must be true or false, not #{value.inspect}"
      end

      def table!(name)
        value = public_send(name)
        return if value.respond_to?(:to_h) && !value.is_a?(Array)

        raise AMQP::ConfigurationError, "#{PATH}.#{name} must be settings by name, not #{value.class}"
      end

      def seconds!(name)
        value = public_send(name)
        return if value.is_a?(Numeric) && value.real? && !value.negative?

        raise AMQP::ConfigurationError, "#{PATH}.#{name} must be seconds, 0 or more, not #{value.inspect}"
      end

      def shown(name, value)
        return "***" if SECRETS.include?(name)
        return [value].flatten(1).map(&:class).join(",") if FOREIGN.include?(name)

        name == :url ? BrokerURL.redact(value).inspect : value.inspect
      end
    end
  end
end
