# frozen_string_literal: true

# The application that the documents speak of: Rails with a SQLite file, and a broker at AMQP_URL.

require "rails"
require "active_record"
require "rake"
require "tmpdir"
require "acemq_native"
require "acemq/testing"

# A shop.
class Shop < Rails::Application
  config.root = Dir.mktmpdir("acemq-docs")
  config.eager_load = false
  config.logger = Logger.new($stderr, level: Logger::WARN)
  config.active_support.deprecation = :log
  config.acemq.url = ENV.fetch("AMQP_URL")
end
Shop.initialize!
at_exit { FileUtils.remove_entry(Shop.root) }

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: Shop.root.join("shop.sqlite3").to_s, timeout: 5000)
ActiveRecord::Base.connection.create_table(:orders) { |t| t.string :number }
AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.create_table(ActiveRecord::Base.connection)
AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.create_table(ActiveRecord::Base.connection)

# As Rails' generator makes it.
class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end

# As the install generator makes it.
class OutboxMessage < ApplicationRecord
  self.table_name = "acemq_outbox"
end

# Whose work is to be done once.
module Payments
  def self.charge!(*) = true
end

# What a document's broker has, for as long as it runs.
module Docs
  def self.declare(topology)
    connection = AceMQ::AMQP::Connection.open(ENV.fetch("AMQP_URL"))
    connection.apply(topology)
    at_exit do
      topology.queues.each { |queue| connection.delete_queue(queue.name) }
      connection.close
    end
  end

  # @return [String] URL of a PostgreSQL database that is empty, as far as can be seen by it, for as long as a document runs
  def self.postgres
    require "pg"
    schema = "docs_#{Process.pid}"
    url = ENV.fetch("POSTGRES_URL")
    owner = PG.connect(url)
    owner.exec("SET client_min_messages = warning; CREATE SCHEMA #{schema}")
    at_exit { owner.exec("DROP SCHEMA #{schema} CASCADE") }
    "#{url}#{url.include?("?") ? "&" : "?"}options=-csearch_path%3D#{schema}"
  end
end

extend Rake::DSL # as in a Rakefile

def gem(*) = nil
