# frozen_string_literal: true

require "active_record"
require "fileutils"
require "json"
require_relative "../../spec/support/servers"

# Where the broker and the database are: named by ACEMQ_URL and DATABASE_URL, or started for this run.
class Places
  FOLDER = File.expand_path("../../tmp/demo", __dir__)

  # The demo kills processes, not machines: tens of thousands of commits need not wait for the disk one by one.
  HASTE = { variables: { synchronous_commit: "off" } }.freeze

  # For the relay's process: the same places, found in its environment.
  def self.from_environment
    config = JSON.parse(ENV.fetch("DEMO_DATABASE"), symbolize_names: true)
    new(broker_url: ENV.fetch("ACEMQ_URL"), config: config)
  end

  # @param database [String] sqlite, postgres, or mariadb; DATABASE_URL comes first
  def self.prepare(database)
    broker_url = ENV["ACEMQ_URL"] || AceMQ::TestServers.rabbitmq.url
    return new(broker_url: broker_url, config: { url: ENV.fetch("DATABASE_URL") }) if ENV["DATABASE_URL"]

    new(broker_url: broker_url, config: database == "sqlite" ? sqlite_file : database_of_a_server(database))
  end

  def self.sqlite_file
    FileUtils.mkdir_p(FOLDER)
    file = File.join(FOLDER, "shop-#{Process.pid}.sqlite3")
    at_exit { FileUtils.rm_f([file, "#{file}-wal", "#{file}-shm"]) if File.exist?(file) }
    { adapter: "sqlite3", database: file, timeout: 10_000 }
  end

  # A database of our own, also on a server that others use.
  def self.database_of_a_server(kind)
    server = AceMQ::TestServers.public_send(kind)
    name = "acemq_demo_#{owner = Process.pid}"
    admin = -> { ActiveRecord::Base.establish_connection(server.config).connection }
    admin.call.create_database(name)
    at_exit { admin.call.drop_database(name) if Process.pid == owner }
    config = ActiveRecord::DatabaseConfigurations::UrlConfig.new("demo", "primary", server.url, {}).configuration_hash
    config.merge(server.config.except(:url), database: name, **(kind == "postgres" ? HASTE : {}))
  end
  private_class_method :sqlite_file, :database_of_a_server

  attr_reader :broker_url

  def initialize(broker_url:, config:)
    @broker_url = broker_url
    @config = config
  end

  def connect_database
    ActiveRecord::Base.establish_connection(@config)
    return unless adapter == "SQLite"

    # As current Rails sets up SQLite: readers and the one writer do not wait for each other.
    ActiveRecord::Base.connection.execute("PRAGMA journal_mode = WAL")
    ActiveRecord::Base.connection.execute("PRAGMA synchronous = NORMAL")
  end

  def adapter
    ActiveRecord::Base.connection.adapter_name
  end

  def environment
    { "ACEMQ_URL" => broker_url, "DEMO_DATABASE" => JSON.generate(@config) }
  end
end
