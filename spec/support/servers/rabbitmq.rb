# frozen_string_literal: true

require_relative "certificates"
require_relative "server"

module AceMQ
  module TestServers
    # Erlang's port mapper, on a port of its own: the machine's may be serving somebody else's brokers, and one that
    # a broker starts by itself would outlive us.
    class PortMapper < Server
      def environment
        { "ERL_EPMD_PORT" => port.to_s, "ERL_EPMD_ADDRESS" => HOST }
      end

      private

      def prepare; end

      def command
        [program("/usr/bin/epmd", "/usr/local/bin/epmd", package: "erlang-base")]
      end

      def ready?
        TCPSocket.new(HOST, port).close.nil?
      rescue SystemCallError
        false
      end
    end

    # A RabbitMQ node with an AMQP listener on the loopback interface.
    class RabbitMQ < Server
      PROTOCOL_HEADER = "AMQP\x00\x00\x09\x01"

      # @return [Integer, nil]
      attr_reader :tls_port

      # @param settings [Hash] more lines for rabbitmq.conf
      # @param tls [Certificates::Pair, nil] adds a TLS listener with this certificate
      # @param authority [String, nil] path; clients must then show a certificate that it signed
      # @param plugins [Array<String>] to be enabled
      def initialize(settings: {}, tls: nil, authority: nil, plugins: [])
        super()
        @distribution_port, tls_port = Server.free_ports(2)
        @tls_port = tls_port if tls
        @plugins = plugins
        @settings = tls ? settings.merge(tls_settings(tls, authority)) : settings
      end

      def url(user: "guest", password: "guest", vhost: "%2F")
        "amqp://#{user}:#{password}@#{HOST}:#{port}/#{vhost}"
      end

      def tls_url(host: HOST, user: "guest", password: "guest", vhost: "%2F")
        "amqps://#{user}:#{password}@#{host}:#{tls_port}/#{vhost}"
      end

      # @return [String] what rabbitmqctl printed
      # @example ctl("list_queues", "name", "messages")
      def ctl(*arguments)
        run(sbin("rabbitmqctl"), "--quiet", "--node", node, *arguments, env: environment)
      end

      # The memory alarm: the broker stops reading from connections that publish. Set by its name, since RabbitMQ 4 no
      # longer takes a limit of nothing.
      def alarm!(raised)
        memory = "{resource_limit, memory, node()}"
        ctl("eval", raised ? "rabbit_alarm:set_alarm({#{memory}, []})." : "rabbit_alarm:clear_alarm(#{memory}).")
      end

      def start
        port_mapper.start
        super
      end

      def dispose
        super
        port_mapper.dispose
      end

      private

      # By address: a machine need not know any name, its own or localhost.
      def node
        "acemq-#{port}@#{HOST}"
      end

      def port_mapper
        @port_mapper ||= PortMapper.new
      end

      def prepare
        write("rabbitmq.conf", @settings.merge(configuration).map { |key, value| "#{key} = #{value}\n" }.join)
        write("enabled_plugins", "[#{@plugins.join(",")}].\n")
        write("rabbitmq-env.conf", "") # in place of the one in /etc
      end

      def configuration
        { "listeners.tcp.1" => "#{HOST}:#{port}", "vm_memory_high_watermark.relative" => "0.6",
          "disk_free_limit.absolute" => "50MB", "log.file.level" => "info" }
      end

      def tls_settings(pair, authority)
        asked = authority ? { "ssl_options.cacertfile" => authority, "ssl_options.fail_if_no_peer_cert" => "true" } : {}
        { "listeners.ssl.1" => "#{HOST}:#{tls_port}", "ssl_options.certfile" => pair.certificate,
          "ssl_options.keyfile" => pair.key, "ssl_options.verify" => authority ? "verify_peer" : "verify_none" }.merge(asked)
      end

      def write(name, content)
        File.write(File.join(folder, name), content)
      end

      def command
        [sbin("rabbitmq-server")]
      end

      # The scripts themselves: Debian's wrappers change to another user and refuse everybody else.
      def sbin(name)
        program("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/#{name}", "/opt/rabbitmq/sbin/#{name}",
                "/usr/local/sbin/#{name}", package: "rabbitmq-server")
      end

      def environment
        {
          "HOME" => folder, "RABBITMQ_NODENAME" => node, "RABBITMQ_USE_LONGNAME" => "true",
          "RABBITMQ_DIST_PORT" => @distribution_port.to_s,
          "RABBITMQ_NODE_PORT" => port.to_s, "RABBITMQ_NODE_IP_ADDRESS" => HOST,
          "RABBITMQ_MNESIA_BASE" => File.join(folder, "mnesia"), "RABBITMQ_LOG_BASE" => folder,
          "RABBITMQ_CONFIG_FILE" => File.join(folder, "rabbitmq.conf"),
          "RABBITMQ_CONF_ENV_FILE" => File.join(folder, "rabbitmq-env.conf"),
          "RABBITMQ_ENABLED_PLUGINS_FILE" => File.join(folder, "enabled_plugins"),
          "RABBITMQ_PID_FILE" => File.join(folder, "rabbitmq.pid"),
          "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS" => "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
        }.merge(port_mapper.environment)
      end

      # The node listens at the end of its boot; the first frame it sends is connection.start.
      def ready?
        greets? && (@tls_port.nil? || listens?(@tls_port))
      end

      def greets?
        Socket.tcp(HOST, port, connect_timeout: 1) do |socket|
          socket.write(PROTOCOL_HEADER)
          socket.wait_readable(2) && socket.readpartial(1) == "\x01"
        end
      rescue SystemCallError, EOFError
        false
      end

      # RabbitMQ opens it a moment after the other.
      def listens?(port)
        Socket.tcp(HOST, port, connect_timeout: 1, &:close)
        true
      rescue SystemCallError
        false
      end
    end
  end
end
