# frozen_string_literal: true

require_relative "amqp"
require_relative "rails/configuration"
require_relative "rails/consumer"
require_relative "rails/health"
require_relative "rails/registry"
require_relative "rails/relays"
require_relative "rails/runner"

module AceMQ
  # One connection for the process, configured as a Rails application is, and the
  # classes that handle messages. Loads without Rails, and then asks for nothing of it.
  module Rails
    # Asked for by those who mount, schedule or call them.
    autoload :OutboxHealthCheck, File.expand_path("rails/outbox_health_check", __dir__)
    autoload :OutboxPruneJob, File.expand_path("rails/outbox_prune_job", __dir__)
    autoload :OutboxRelayJob, File.expand_path("rails/outbox_relay_job", __dir__)
    autoload :Probe, File.expand_path("rails/probe", __dir__)
    autoload :ProbeServer, File.expand_path("rails/probe_server", __dir__)

    @mutex = Mutex.new

    class << self
      # The settings of the process, in a Rails application the same object as its
      # `config.acemq`. They are read when the connection is made.
      #
      # @return [Configuration]
      def config
        @config || @mutex.synchronize { @config ||= Configuration.new }
      end

      # @return [Configuration]
      attr_writer :config

      # @return [Logger] Rails' own where there is one, else one to standard output
      def logger
        @logger || (::Rails.logger if defined?(::Rails) && ::Rails.respond_to?(:logger)) || @mutex.synchronize { own_logger }
      end

      # @return [Logger]
      attr_writer :logger

      # The connection of the process, made on first use. It dials when it is first
      # used for the wire, so a message can be recorded while no broker is up, and
      # again in a forked child.
      #
      # @return [AceMQ::AMQP::Connection]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def connection
        @connection || made_once
      end

      # For specs: puts another connection in its place, or with nil none. The former one is not closed.
      #
      # @param connection [AceMQ::AMQP::Connection, nil]
      def connection=(connection)
        @mutex.synchronize { @connection = connection }
      end

      # @return [Boolean] whether there is a connection with a live link; never makes or dials one
      def connected?
        @connection&.open? || false
      end

      # @see AceMQ::AMQP::Connection#publish
      # @return [AceMQ::AMQP::Envelope]
      def publish(payload, **options)
        connection.publish(payload, **options)
      end

      # @see AceMQ::AMQP::Connection#publish_all
      # @return [Array<AceMQ::AMQP::Envelope>]
      def publish_all(payloads, **options)
        connection.publish_all(payloads, **options)
      end

      # @return [AceMQ::AMQP::Health::Report] asks the broker
      def health
        Health.of(connection)
      end

      # What `config.acemq.topology` says, without a broker.
      #
      # @return [AceMQ::AMQP::Topology]
      # @raise [AceMQ::AMQP::ConfigurationError] for what it does not know
      def topology
        config.build_topology
      end

      # Declares {.topology} on the broker.
      #
      # @return [AceMQ::AMQP::Topology]
      # @raise [AceMQ::AMQP::TopologyError, AceMQ::AMQP::TransportError]
      def apply_topology
        topology.tap { |topology| connection.apply(topology) }
      end

      # @return [Array<Class>] the consumer classes that are loaded and have a queue
      def consumers
        Registry.consumers
      end

      # Starts the relays whose `start` was called while the application was initialised. Puma, `acemq-consumer` and
      # `acemq relay` do it by themselves.
      #
      # @return [Array<AceMQ::AMQP::Patterns::OutboxRelay>]
      def start_relays
        Relays.start
      end

      # Closes the connection, the relays on it first. The next use makes a new one;
      # does nothing when there is none.
      #
      # @param timeout [Numeric, nil] seconds; the setting `shutdown_timeout` when nil
      # @return [nil]
      def disconnect!(timeout: nil)
        closing = @mutex.synchronize { @connection.tap { @connection = nil } }
        closing&.close(timeout: timeout || config.shutdown_timeout)
        nil
      end

      # @return [Boolean] whether it is the one of the process
      # @api private
      def connection?(connection)
        !connection.nil? && @connection.equal?(connection)
      end

      private

      def own_logger
        @own_logger ||= begin
          require "logger"
          Logger.new($stdout)
        end
      end

      def made_once
        settings = config
        @mutex.synchronize { @connection ||= settings.build_connection }
      end
    end
  end
end

require_relative "rails/railtie" if defined?(Rails::Railtie)
