# frozen_string_literal: true

require "pg"
require "sqlite3"

module AceMQ
  module SpecSupport
    # The example's database by its driver, beside ActiveRecord.
    module RawConnections
      LOCK = Mutex.new

      # @return [PG::Connection, SQLite3::Database] this thread's, closed after the example
      def raw
        LOCK.synchronize { raws[Thread.current] } || connect_raw.tap { |raw| LOCK.synchronize { raws[Thread.current] = raw } }
      end

      # @return [PG::Connection, SQLite3::Database] another one, closed after the example
      def connect_raw
        config = Database.config(database)
        opened = database == :sqlite ? raw_sqlite(config) : raw_postgres(config)
        cleanups << -> { opened.close unless opened.respond_to?(:finished?) && opened.finished? }
        opened
      end

      private

      def raws
        @raws ||= {}.compare_by_identity
      end

      def raw_sqlite(config)
        SQLite3::Database.new(config[:database]).tap { |raw| raw.busy_timeout(5_000) }
      end

      def raw_postgres(config)
        PG.connect(host: config[:host], port: config[:port], user: config[:username], password: config[:password],
                   dbname: config[:database])
      end

      # For example groups: `on_each_driver { it "..." }`, with `source`, what a store is given, and `transaction`, which
      # yields what runs a statement in it.
      module Groups
        def on_each_driver(&examples)
          on_each_database(:sqlite, :postgres) do
            context("by its driver") { by_driver(&examples) }
            context("by ActiveRecord's raw connection") { by_active_record(&examples) }
          end
        end

        private

        def by_driver(&examples)
          let(:source) { -> { raw } }

          define_method(:transaction) do |&work|
            raw.transaction { work.call(->(sql) { raw.is_a?(PG::Connection) ? raw.exec(sql) : raw.execute(sql) }) }
          end

          class_exec(&examples)
        end

        def by_active_record(&examples)
          let(:source) { -> { ActiveRecord::Base.connection.raw_connection } }

          define_method(:transaction) do |&work|
            ActiveRecord::Base.transaction { work.call(->(sql) { ActiveRecord::Base.connection.execute(sql) }) }
          end

          after { ActiveRecord::Base.connection_pool.release_connection }

          class_exec(&examples)
        end
      end
    end
  end
end

RSpec.configure do |config|
  config.include AceMQ::SpecSupport::RawConnections
  config.extend AceMQ::SpecSupport::RawConnections::Groups
end
