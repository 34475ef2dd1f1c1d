# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # The table of the outbox, as all libraries of the family know it.
      #
      # @api private
      module OutboxTable
        NAME = "acemq_outbox"
        KEY = "id"
        COLUMNS = %w[id exchange_name routing_key body body_encoding content_type headers created_at published_at
                     attempts last_error locked_by locked_until].freeze
        LARGE = %w[body headers].freeze
        INSTALL = "run `bin/rails generate acemq:install` and `bin/rails db:migrate`, or call " \
                  "AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.create_table(connection); for raw connections, " \
                  "SQLOutboxStore#create_schema"

        # 16 MB; a text column without it holds 64 kB on MySQL. Other databases have no such limit.
        LONGEST_BODY = 16_777_215

        # An update that leaves indexed columns alone finds room on its own page.
        FILLFACTOR = "WITH (fillfactor = 70)"

        PENDING = "published_at IS NULL"
        PUBLISHED = "published_at IS NOT NULL"

        class << self
          # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
          # @param by_time [Boolean] whether claims are to find the oldest rows of the whole table quickly as well
          def create(connection, name, by_time:)
            dialect = Dialects.for(connection)
            connection.create_table(name, id: :string, limit: 64, **options(dialect)) { |t| columns(t) }
            add_indexes(connection, name, by_time: by_time)
          end

          # @param concurrently [Boolean] without stopping writers, on PostgreSQL too; not inside a transaction then
          def add_indexes(connection, name, by_time:, concurrently: false)
            dialect = Dialects.for(connection)
            options = concurrently && dialect.is_a?(Dialects::PostgreSQL) ? { algorithm: :concurrently } : {}
            indexes(dialect, name.split(".").last, by_time).each do |columns, index|
              next if connection.index_name_exists?(name, index[:name])

              connection.add_index(name, columns, **index, **options)
            end
            Database::TABLES.clear
          end

          # What a table that came from elsewhere lacks; outside of a transaction.
          def update(connection, name, by_time:)
            TableUpdate.new(connection, name, self).call
            if Dialects.for(connection).is_a?(Dialects::PostgreSQL)
              connection.execute("ALTER TABLE #{connection.quote_table_name(name)} SET (#{FILLFACTOR[/fillfactor = \d+/]})")
            end
            add_indexes(connection, name, by_time: by_time, concurrently: true)
          end

          # The family's own statements and one index more, for PostgreSQL and SQLite alike.
          #
          # @return [Array<String>]
          def ddl(name)
            index = "CREATE INDEX IF NOT EXISTS #{name.split(".").last}"
            [<<~SQL, "#{index}_pending ON #{name} (published_at, created_at)", <<~INDEX.strip]
              CREATE TABLE IF NOT EXISTS #{name} (
                id VARCHAR(64) PRIMARY KEY, exchange_name VARCHAR(255) NOT NULL, routing_key VARCHAR(255) NOT NULL,
                body TEXT NOT NULL, body_encoding VARCHAR(16) NOT NULL, content_type VARCHAR(255) NOT NULL,
                headers TEXT NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL,
                published_at TIMESTAMP WITH TIME ZONE, attempts INTEGER NOT NULL DEFAULT 0, last_error VARCHAR(1000),
                locked_by VARCHAR(64), locked_until TIMESTAMP WITH TIME ZONE)
            SQL
              #{index}_destination ON #{name} (exchange_name, routing_key, created_at, id) WHERE #{PENDING}
            INDEX
          end

          private

          def options(dialect)
            case dialect
            when Dialects::MySQL then { charset: "utf8mb4", collation: "utf8mb4_bin" }
            when Dialects::PostgreSQL then { options: FILLFACTOR }
            else {}
            end
          end

          def columns(t)
            t.string :exchange_name, null: false, limit: 255
            t.string :routing_key, null: false, limit: 255
            t.text :body, null: false, limit: LONGEST_BODY
            t.string :body_encoding, null: false, limit: 16
            t.string :content_type, null: false, limit: 255
            t.text :headers, null: false, limit: LONGEST_BODY
            t.datetime :created_at, null: false, precision: 6
            t.datetime :published_at, precision: 6
            t.integer :attempts, null: false, default: 0
            t.string :last_error, limit: 1000
            t.string :locked_by, limit: 64
            t.datetime :locked_until, precision: 6
          end

          # None of them has a column that a claim writes. The one by (published_at, created_at) gives no order on
          # PostgreSQL, which has partial ones instead.
          def indexes(dialect, base, by_time)
            walk = %i[exchange_name routing_key created_at]
            by_destination = [[*walk, :id], { name: "#{base}_destination", where: PENDING }]
            pending = [%i[published_at created_at], { name: "#{base}_pending" }]
            case dialect
            when Dialects::MySQL then [[[:published_at, *walk], { name: "#{base}_destination" }], pending]
            when Dialects::SQLite then [by_destination, pending]
            else
              oldest = [%i[created_at id], { name: "#{base}_oldest", where: PENDING }]
              [by_destination, [%i[published_at], { name: "#{base}_published", where: PUBLISHED }], *([oldest] if by_time)]
            end
          end
        end
      end
    end
  end
end
