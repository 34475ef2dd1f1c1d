# frozen_string_literal: true

require "uri"
require_relative "lesser_account"
require_relative "server"

module AceMQ
  module TestServers
    # PgBouncer in transaction mode before a PostgreSQL: every transaction may be over another session.
    class PgBouncer < Server
      include LesserAccount

      SESSIONS = 3 # with the server, for each database

      # @param postgres [PostgreSQL, External]
      def initialize(postgres)
        super()
        @postgres = postgres
      end

      def url
        server.dup.tap do |uri|
          uri.host = HOST
          uri.port = port
        end.to_s
      end

      private

      def server
        @server ||= URI(@postgres.url)
      end

      def prepare
        File.write(settings, <<~INI)
          [databases]
          * = host=#{server.host} port=#{server.port || 5432}#{password}

          [pgbouncer]
          listen_addr = #{HOST}
          listen_port = #{port}
          unix_socket_dir =
          auth_type = trust
          auth_file = #{users}
          pool_mode = transaction
          default_pool_size = #{SESSIONS}
          max_client_conn = 500
        INI
        File.write(users, %("#{server.user}" ""\n))
        give_folder_to_account
      end

      def password
        " password=#{URI.decode_www_form_component(server.password)}" if server.password
      end

      def command
        [*as_account, program("/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer", package: "pgbouncer"), settings]
      end

      def ready?
        TCPSocket.new(HOST, port).close.nil?
      rescue SystemCallError
        false
      end

      def settings
        File.join(folder, "pgbouncer.ini")
      end

      def users
        File.join(folder, "users.txt")
      end
    end
  end
end
