# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # The table of the keys, as all libraries of the family know it.
      #
      # @api private
      module IdempotencyTable
        NAME = "acemq_idempotency"
        KEY = "message_id"
        COLUMNS = %w[message_id state claimed_by recorded_at expires_at].freeze
        LARGE = [].freeze
        INSTALL = "run `bin/rails generate acemq:install` and `bin/rails db:migrate`, or call " \
                  "AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.create_table(connection); for raw connections, " \
                  "SQLIdempotencyStore#create_schema"

        class << self
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          def create(connection, name)
            mysql = Dialects.for(connection).is_a?(Dialects::MySQL)
            # Keys that differ in case or accents only are different keys.
            options = mysql ? { charset: "utf8mb4", collation: "utf8mb4_bin" } : {}
            connection.create_table(name, id: false, **options) do |t|
              t.string :message_id, null: false, limit: 255, primary_key: true
              t.string :state, null: false, limit: 16
              t.string :claimed_by, limit: 64
              t.datetime :recorded_at, null: false, precision: 6
              t.datetime :expires_at, null: false, precision: 6
            end
            add_index(connection, name)
          end

          # What a table that came from elsewhere lacks; outside of a transaction.
          def update(connection, name)
            TableUpdate.new(connection, name, self).call
            return if connection.indexes(name).any? { |index| Array(index.columns).first == "expires_at" }

            concurrently = Dialects.for(connection).is_a?(Dialects::PostgreSQL) ? { algorithm: :concurrently } : {}
            add_index(connection, name, **concurrently)
          end

          # The family's own statements, for PostgreSQL and SQLite alike.
          #
          # @return [Array<String>]
          def ddl(name)
            [<<~SQL, "CREATE INDEX IF NOT EXISTS #{name.split(".").last}_expiry ON #{name} (expires_at)"]
              CREATE TABLE IF NOT EXISTS #{name} (
                message_id VARCHAR(255) PRIMARY KEY, state VARCHAR(16) NOT NULL, claimed_by VARCHAR(64),
                recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, expires_at TIMESTAMP WITH TIME ZONE NOT NULL)
            SQL
          end

          private

          def add_index(connection, name, **options)
            connection.add_index(name, :expires_at, name: "#{name.split(".").last}_expiry", **options)
          end
        end
      end
    end
  end
end
