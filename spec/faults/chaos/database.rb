# frozen_string_literal: true

require "active_record"
require "fileutils"
require "securerandom"
require_relative "../../support/servers"
require_relative "ledger"

module AceMQ
  module Chaos
    # A database of this run's own: the outbox, a table of work beside it, a look into both, and what can go wrong
    # with it. Subclasses know one product each.
    class Database
      FOLDER = File.expand_path("../../../tmp/chaos", __dir__)

      # The judge's own connection, apart from whatever else the process is connected to.
      class Eye < ActiveRecord::Base
        self.abstract_class = true
      end

      class << self
        # @param name [String] sqlite, postgres or mariadb
        # @return [Database]
        def open(name)
          { "sqlite" => SQLite, "postgres" => Postgres, "mariadb" => MariaDB }.fetch(name).new.tap(&:create)
        end
      end

      # @return [Hash] for establish_connection
      attr_reader :config

      def connect
        Eye.establish_connection(own_config)
      end

      def disconnect
        Eye.remove_connection
      end

      # @return [Array<String>] what can go wrong with it
      def faults
        %w[database.sessions database.restart database.kill database.read_only]
      end

      # Makes the tables anew.
      #
      # @param variant [Boolean] one of two ways of setting up the database, where it has two
      def prepare(variant: false) # rubocop:disable Lint/UnusedMethodArgument -- SQLite has two
        %i[acemq_outbox chaos_work].each { |table| db.drop_table(table, if_exists: true) }
        AMQP::Patterns::ActiveRecordOutboxStore.create_table(db)
        db.create_table(:chaos_work, id: :string, limit: 64) do |t|
          t.string :exchange_name, null: false
          t.string :routing_key, null: false
          t.integer :n, null: false
        end
      end

      # A row that can never be sent, as a migration gone wrong or another program may leave it.
      #
      # @param lane [Array(String, String)]
      def add_poison(id, lane)
        db.execute(<<~SQL)
          INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at)
          VALUES (#{[id, *lane, "%%%", "base64", "application/json", "{}"].map { |text| db.quote(text) }.join(", ")}, #{now})
        SQL
      end

      # @return [Array<String>] ids
      def marked
        db.select_values("SELECT id FROM acemq_outbox WHERE published_at IS NOT NULL")
      end

      # @return [Array<Array(String, Array, Boolean)>] id, lane, and whether it is held: what is not published and
      #   not retired, in order
      def waiting(max_attempts)
        sql = "SELECT id, exchange_name, routing_key, CASE WHEN locked_until >= #{now} THEN 1 ELSE 0 END FROM acemq_outbox " \
              "WHERE published_at IS NULL AND attempts < #{max_attempts} ORDER BY created_at, id"
        db.select_rows(sql).map { |id, exchange, routing_key, held| [id, [exchange, routing_key], held.to_i == 1] }
      end

      # @return [Integer] rows that a relay holds at this moment
      def leased
        db.select_value("SELECT COUNT(*) FROM acemq_outbox WHERE published_at IS NULL AND locked_by IS NOT NULL " \
                        "AND locked_until >= #{now}").to_i
      end

      # @return [Array<Ledger::Row>]
      def rows
        db.select_rows("SELECT id, exchange_name, routing_key, attempts, published_at FROM acemq_outbox").map do |row|
          Ledger::Row.new(id: row[0], lane: row[1, 2], attempts: row[3].to_i, published: !row[4].nil?)
        end
      end

      # @param ids [Array<String>]
      # @return [Array<Hash>] their rows without the bodies
      def described(ids)
        return [] if ids.empty?

        db.select_all("SELECT o.id, o.routing_key, w.n, o.created_at, o.published_at, o.attempts, o.last_error, o.locked_by, " \
                      "o.locked_until FROM acemq_outbox o LEFT JOIN chaos_work w ON w.id = o.id " \
                      "WHERE o.id IN (#{ids.map { |id| db.quote(id) }.join(", ")}) ORDER BY o.created_at").to_a
      end

      # @return [Hash{String => Ledger::Work}] by id
      def work
        db.select_rows("SELECT id, exchange_name, routing_key, n FROM chaos_work")
          .to_h { |id, exchange, routing_key, n| [id, Ledger::Work.new([exchange, routing_key], n.to_i)] }
      end

      # What could not be read while the database is away is nil.
      def glimpse
        yield self
      rescue ActiveRecord::ActiveRecordError
        look_again
        nil
      end

      def restart
        server.stop
        yield
        server.start
      end

      def crash
        server.kill
        yield
        server.start
      end

      private

      # @return [Hash] of the judge's connection
      def own_config
        config
      end

      def db
        Eye.connection
      end

      # The next look is over a new session.
      def look_again
        Eye.connection_pool.disconnect!
      end
    end

    # A database in a server, ours or one that is named by the environment.
    class ServedDatabase < Database
      def create
        @name = "acemq_chaos_#{Process.pid}_#{SecureRandom.hex(3)}"
        owner = Process.pid
        maintain { |admin| admin.execute("CREATE DATABASE #{@name}") }
        at_exit { drop if Process.pid == owner }
        @config = given.merge(database: @name)
      end

      def drop
        disconnect
        maintain { |admin| admin.execute("DROP DATABASE IF EXISTS #{@name}#{drop_options}") }
      rescue ActiveRecord::ActiveRecordError, TestServers::StartError
        nil # its server is gone, and the database with it
      end

      def faults
        server.ours? ? super : super - %w[database.restart database.kill]
      end

      private

      # Who connects to the server rather than to the database of the run.
      class Admin < ActiveRecord::Base
        self.abstract_class = true
      end

      def given
        config = server.config
        return config unless config.key?(:url)

        ActiveRecord::DatabaseConfigurations::ConnectionUrlResolver.new(config[:url]).to_hash.transform_keys(&:to_sym)
      end

      def maintain
        Admin.establish_connection(given)
        yield Admin.connection
      ensure
        Admin.remove_connection
      end

      def drop_options
        ""
      end
    end

    class Postgres < ServedDatabase
      # Of everybody but the judge.
      def kill_sessions
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity " \
                   "WHERE datname = current_database() AND pid <> pg_backend_pid()")
      end

      # New sessions are read-only and stay so, as those of a server that is about to be replaced.
      def read_only
        maintain { |admin| admin.execute("ALTER DATABASE #{@name} SET default_transaction_read_only = on") }
        kill_sessions
        yield
      ensure
        maintain { |admin| admin.execute("ALTER DATABASE #{@name} RESET default_transaction_read_only") }
      end

      private

      def server
        TestServers.postgres
      end

      def now
        "(clock_timestamp() AT TIME ZONE 'UTC')"
      end

      def drop_options
        " WITH (FORCE)"
      end
    end

    class MariaDB < ServedDatabase
      def kill_sessions
        own = db.select_value("SELECT CONNECTION_ID()").to_i
        ids = db.select_values("SELECT id FROM information_schema.processlist WHERE db = DATABASE()").map(&:to_i)
        (ids - [own]).each { |id| kill(id) }
      end

      def read_only
        maintain { |admin| admin.execute("SET GLOBAL tx_read_only = 1") }
        kill_sessions
        yield
      ensure
        maintain { |admin| admin.execute("SET GLOBAL tx_read_only = 0") }
      end

      # The server's own default for new sessions belongs to everybody on it.
      def faults
        server.ours? ? super : super - %w[database.read_only]
      end

      private

      def server
        TestServers.mariadb
      end

      def now
        "UTC_TIMESTAMP(6)"
      end

      def kill(id)
        db.execute("KILL #{id}")
      rescue ActiveRecord::StatementInvalid
        nil # it has gone by itself
      end
    end

    class SQLite < Database
      TIMEOUT = 5_000 # milliseconds, as Rails sets it up

      def create
        FileUtils.mkdir_p(FOLDER)
        file = File.join(FOLDER, "outbox-#{Process.pid}-#{SecureRandom.hex(3)}.sqlite3")
        owner = Process.pid
        at_exit { FileUtils.rm_f(Dir["#{file}*"]) if Process.pid == owner }
        @config = { adapter: "sqlite3", database: file, timeout: TIMEOUT }
      end

      def faults
        %w[database.lock]
      end

      # @param variant [Boolean] with a write-ahead log, as current Rails has it
      def prepare(variant: false)
        db.execute("PRAGMA journal_mode = #{variant ? "WAL" : "DELETE"}")
        super
      end

      # Somebody else writes, for longer than anybody waits.
      def lock
        other = SQLite3::Database.new(config[:database])
        begin_exclusive(other)
        yield
        other.execute("ROLLBACK")
      ensure
        other&.close
      end

      private

      # A driver that waits does so with Ruby's lock in hand, and the proxy would stand still.
      def own_config
        config.merge(timeout: 100)
      end

      def begin_exclusive(other)
        tries ||= 0
        other.execute("BEGIN EXCLUSIVE")
      rescue SQLite3::BusyException
        raise if (tries += 1) > 1_000

        sleep 0.02
        retry
      end

      def now
        "strftime('%Y-%m-%d %H:%M:%f000', 'now')"
      end
    end
  end
end
