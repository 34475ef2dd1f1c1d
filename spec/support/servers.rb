# frozen_string_literal: true

require_relative "servers/rabbitmq"
require_relative "servers/postgresql"
require_relative "servers/mariadb"
require_relative "servers/pgbouncer"
require_relative "servers/external"

module AceMQ
  # The servers that specs, benchmarks, and the demo talk to. Each is started on first use, on a port and in a
  # folder of its own, and ended by the process that started it. A server named in the environment is used instead.
  #
  #   AceMQ::TestServers.rabbitmq.url     # => "amqp://guest:guest@127.0.0.1:40411/%2F"
  #   AceMQ::TestServers.postgres.config  # => {adapter: "postgresql", ...} for ActiveRecord
  module TestServers
    KINDS = {
      rabbitmq: [RabbitMQ, "ACEMQ_TEST_AMQP_URL"],
      postgres: [PostgreSQL, "ACEMQ_TEST_POSTGRES_URL"],
      mariadb: [MariaDB, "ACEMQ_TEST_MARIADB_URL"]
    }.freeze

    class << self
      KINDS.each_key do |kind|
        # @return [Server, External] running
        define_method(kind) { running[kind] ||= obtain(*KINDS.fetch(kind)) }
      end

      # @return [PgBouncer] running before {.postgres}
      def pgbouncer
        running[:pgbouncer] ||= PgBouncer.new(postgres).start
      end

      # A second broker, always ours, for examples that cannot share the first one.
      # @return [RabbitMQ] not started
      def new_rabbitmq(**options)
        RabbitMQ.new(**options)
      end

      private

      def running
        @running ||= {}
      end

      def obtain(server, variable)
        url = ENV.fetch(variable, "")
        url.empty? ? server.new.start : External.new(url, variable)
      end
    end
  end
end
