# frozen_string_literal: true

require "active_record"
require "fileutils"
require "securerandom"
require "uri"

module AceMQ
  module SpecSupport
    # The three databases, each with a database of this process's own in it, so that runs beside each other do not
    # meet. ActiveRecord::Base is connected to one of them at a time.
    module Database
      NAMES = %i[sqlite postgres mariadb].freeze
      POOL = 60
      FOLDER = File.expand_path("../../tmp", __dir__)

      class << self
        # @param name [Symbol] one of {NAMES}
        # @param options [Hash] of the configuration: `timeout: 2000`
        def connect(name, **options)
          ::ActiveRecord::Base.establish_connection(config(name).merge(pool: POOL, **options))
        end

        def disconnect
          ::ActiveRecord::Base.remove_connection
        end

        # @return [Hash] for establish_connection
        def config(name)
          configs[name] ||= name == :sqlite ? sqlite : own_database(server(name))
        end

        # @return [String] for programs that are told by DATABASE_URL
        def url(name)
          config = config(name)
          return "sqlite3:#{config[:database]}" if name == :sqlite

          scheme = name == :postgres ? "postgres" : "mysql2"
          user = [config[:username], config[:password]].compact.map { |part| URI.encode_www_form_component(part) }.join(":")
          "#{scheme}://#{user}@#{config[:host]}:#{config[:port]}/#{config[:database]}"
        end

        private

        def configs
          @configs ||= {}
        end

        def sqlite
          FileUtils.mkdir_p(FOLDER)
          file = File.join(FOLDER, "#{own_name}.sqlite3")
          at_exit_here { FileUtils.rm_f(Dir["#{file}*"]) }
          { adapter: "sqlite3", database: file, timeout: 5_000 }
        end

        def server(name)
          given = TestServers.public_send(name).config
          given.key?(:url) ? resolved(given[:url]) : given
        end

        def resolved(url)
          ::ActiveRecord::DatabaseConfigurations::ConnectionUrlResolver.new(url).to_hash.symbolize_keys
        end

        def own_database(config)
          name = own_name
          maintain(config) { |connection| connection.execute("CREATE DATABASE #{name}") }
          at_exit_here { maintain(config) { |connection| drop(connection, name) } }
          config.merge(database: name)
        end

        def drop(connection, name)
          force = " WITH (FORCE)" if connection.adapter_name == "PostgreSQL"
          connection.execute("DROP DATABASE IF EXISTS #{name}#{force}")
        end

        # On a connection beside the one that examples use.
        def maintain(config)
          Maintenance.establish_connection(config)
          yield Maintenance.connection
        ensure
          Maintenance.remove_connection
        end

        def own_name
          "acemq_spec_#{Process.pid}_#{SecureRandom.hex(3)}"
        end

        def at_exit_here
          owner = Process.pid
          at_exit do
            next unless Process.pid == owner

            disconnect
            yield
          end
        end
      end

      class Maintenance < ::ActiveRecord::Base
        self.abstract_class = true
      end

      # For example groups: `on_each_database { |name| it "..." }`.
      module Groups
        # Runs the same examples on every database, each with ActiveRecord connected to it.
        #
        # @param names [Array<Symbol>]
        # @param options [Hash] of the configuration
        def on_each_database(*names, **options, &examples)
          (names.empty? ? NAMES : names).each do |name|
            context "on #{name}", name do
              before(:context) { Database.connect(name, **options) }
              after(:context) { Database.disconnect }

              let(:database) { name }
              class_exec(name, &examples)
            end
          end
        end
      end
    end
  end
end

RSpec.configure { |config| config.extend AceMQ::SpecSupport::Database::Groups }
