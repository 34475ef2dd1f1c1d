# frozen_string_literal: true

require "tmpdir"
require_relative "server"

module AceMQ
  module TestServers
    # A PostgreSQL cluster with one database. It refuses to run as root, so root runs it as the user that Debian's
    # package brings.
    class PostgreSQL < Server
      USER = "acemq"
      DATABASE = "acemq_test"
      ACCOUNT = "postgres"

      # @return [Hash] for ActiveRecord's establish_connection
      def config
        { adapter: "postgresql", host: HOST, port: port, username: USER, database: DATABASE }
      end

      def url
        "postgres://#{USER}@#{HOST}:#{port}/#{DATABASE}"
      end

      private

      def prepare
        FileUtils.chown(ACCOUNT, ACCOUNT, folder) if root?
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

      def as_account
        root? ? ["setpriv", "--reuid=#{ACCOUNT}", "--regid=#{ACCOUNT}", "--init-groups"] : []
      end

      def bin(name)
        program("/usr/lib/postgresql/*/bin/#{name}", "/usr/local/pgsql/bin/#{name}", package: "postgresql")
      end

      # A checkout below /root is closed to the account that the server runs as.
      def data_root
        return ROOT unless root?

        closed = ROOT.split("/").each_index.map { |depth| ROOT.split("/")[0..depth].join("/") }
                     .any? { |path| File.directory?(path) && File.stat(path).mode.nobits?(0o001) }
        closed ? File.join(Dir.tmpdir, "acemq-servers") : ROOT
      end
    end
  end
end
