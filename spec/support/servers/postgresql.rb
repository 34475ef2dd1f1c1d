# frozen_string_literal: true

require_relative "lesser_account"
require_relative "server"

module AceMQ
  module TestServers
    # A PostgreSQL cluster with one database.
    class PostgreSQL < Server
      include LesserAccount

      USER = "acemq"
      DATABASE = "acemq_test"

      # @return [Hash] for ActiveRecord's establish_connection
      def config
        { adapter: "postgresql", host: HOST, port: port, username: USER, database: DATABASE }
      end

      def url
        "postgres://#{USER}@#{HOST}:#{port}/#{DATABASE}"
      end

      private

      def prepare
        give_folder_to_account
        run(*as_account, bin("initdb"), "--pgdata=#{data}", "--username=#{USER}", "--auth=trust",
            "--encoding=UTF8", "--locale=C", "--no-sync", env: environment)
      end

      def command
        [*as_account, bin("postgres"), "-D", data, "-p", port.to_s,
         "-c", "listen_addresses=#{HOST}", "-c", "unix_socket_directories="]
      end

      def ready?
        system(bin("pg_isready"), "-q", "-h", HOST, "-p", port.to_s, "-d", "postgres", "-U", USER)
      end

      def ready
        return if @database_made

        run(bin("createdb"), "-h", HOST, "-p", port.to_s, "-U", USER, DATABASE)
        @database_made = true
      end

      # Fast shutdown: the plain one waits for every client to leave.
      def stop_signal
        "INT"
      end

      def quick_signal
        "QUIT"
      end

      def environment
        { "TZ" => "UTC" }
      end

      def data
        File.join(folder, "data")
      end

      def bin(name)
        program("/usr/lib/postgresql/*/bin/#{name}", "/usr/local/pgsql/bin/#{name}", package: "postgresql")
      end
    end
  end
end
