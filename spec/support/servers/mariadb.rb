# frozen_string_literal: true

require_relative "server"

module AceMQ
  module TestServers
    # A MariaDB server with one database, and none of the machine's settings.
    class MariaDB < Server
      DATABASE = "acemq_test"
      GREETING = "\x0a" # protocol version 10, the fifth byte of the first packet

      # @return [Hash] for ActiveRecord's establish_connection
      def config
        { adapter: "mysql2", host: HOST, port: port, username: "root", database: DATABASE, encoding: "utf8mb4" }
      end

      def url
        "mysql2://root@#{HOST}:#{port}/#{DATABASE}?encoding=utf8mb4"
      end

      private

      def prepare
        run(program("/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db", package: "mariadb-server"),
            "--no-defaults", "--datadir=#{data}", "--auth-root-authentication-method=normal", "--skip-test-db", *as_root)
        File.write(first_statements, "CREATE DATABASE IF NOT EXISTS #{DATABASE};\n")
      end

      def command
        [program("/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd", package: "mariadb-server"),
         "--no-defaults", "--datadir=#{data}", "--bind-address=#{HOST}", "--port=#{port}",
         "--socket=mariadb.sock", "--pid-file=mariadb.pid", "--init-file=#{first_statements}",
         "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--skip-name-resolve", *as_root]
      end

      # It greets once it has run its first statements.
      def ready?
        Socket.tcp(HOST, port, connect_timeout: 1) do |socket|
          socket.wait_readable(2) && socket.readpartial(5)[4] == GREETING
        end
      rescue SystemCallError, EOFError
        false
      end

      def data
        File.join(folder, "data")
      end

      def first_statements
        File.join(folder, "first.sql")
      end

      def as_root
        root? ? ["--user=root"] : []
      end
    end
  end
end
