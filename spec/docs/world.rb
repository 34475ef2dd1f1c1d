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
end

extend Rake::DSL # as in a Rakefile

def gem(*) = nil
