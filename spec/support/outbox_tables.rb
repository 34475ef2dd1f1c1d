# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # Outbox and idempotency tables as they are found in the wild, and a look into them.
    module OutboxTables
      module_function

      # @param origin [Symbol] who made it: `:ours`, an `:application` with a plain migration and one index, or the
      #   `:family`'s other libraries
      def make_outbox(origin = :ours, name: "acemq_outbox")
        store = AMQP::Patterns::ActiveRecordOutboxStore
        connection do |db|
          db.drop_table(name, if_exists: true)
          case origin
          when :ours then store.create_table(db, table: name)
          when :application then plain_outbox(db, name)
          when :family then family_outbox(db, name)
          end
          AMQP::Patterns::Database::TABLES.clear
        end
      end

      # @param origin [Symbol] see {make_outbox}
      def make_idempotency(origin = :ours, name: "acemq_idempotency")
        store = AMQP::Patterns::ActiveRecordIdempotencyStore
        connection do |db|
          db.drop_table(name, if_exists: true)
          case origin
          when :ours then store.create_table(db, table: name)
          when :application then plain_idempotency(db, name)
          when :family then family_idempotency(db, name)
          end
          AMQP::Patterns::Database::TABLES.clear
        end
      end

      def make_orders
        connection do |db|
          db.create_table(:orders, force: true) { |t| t.string :name }
        end
      end

      def empty(*tables)
        connection { |db| tables.each { |table| db.execute("DELETE FROM #{table}") } }
      end

      # @return [Array<Hash>]
      def rows(table = "acemq_outbox", order: "created_at, id")
        connection { |db| db.select_all("SELECT * FROM #{table} ORDER BY #{order}").to_a }
      end

      def row(id, table = "acemq_outbox")
        rows(table).find { |row| row["id"] == id }
      end

      def execute(sql)
        connection { |db| db.update(sql) }
      end

      def value(sql)
        connection { |db| db.select_value(sql) }
      end

      # On a connection given back afterwards, so that examples can look who holds one.
      def connection(&block)
        ::ActiveRecord::Base.connection_pool.with_connection(&block)
      end

      # SQL of the present database for a moment from now, in a table that an application's migration made.
      def sql_time(seconds)
        connection do |db|
          case db.adapter_name
          when "PostgreSQL" then "(clock_timestamp() AT TIME ZONE 'UTC') + INTERVAL '#{seconds} seconds'"
          when "SQLite" then "strftime('%Y-%m-%d %H:%M:%f000', 'now', '#{format("%+.3f", seconds)} seconds')"
          else "UTC_TIMESTAMP(6) + INTERVAL #{(seconds * 1_000_000).to_i} MICROSECOND"
          end
        end
      end

      def plain_outbox(db, name)
        db.create_table(name, id: :string, limit: 64) do |t|
          t.string :exchange_name, null: false, limit: 255
          t.string :routing_key, null: false, limit: 255
          t.text :body, null: false
          t.string :body_encoding, null: false, limit: 16
          t.string :content_type, null: false, limit: 255
          t.text :headers, null: false
          t.datetime :created_at, null: false
          t.datetime :published_at
          t.integer :attempts, null: false, default: 0
          t.string :last_error, limit: 1000
          t.string :locked_by, limit: 64
          t.datetime :locked_until
        end
        db.add_index(name, %i[published_at created_at], name: "#{name}_pending")
      end

      def family_outbox(db, name)
        db.execute(<<~SQL)
          CREATE TABLE #{name} (
            id VARCHAR(64) PRIMARY KEY, exchange_name VARCHAR(255) NOT NULL, routing_key VARCHAR(255) NOT NULL,
            body TEXT NOT NULL, body_encoding VARCHAR(16) NOT NULL, content_type VARCHAR(255) NOT NULL,
            headers TEXT NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL, published_at TIMESTAMP WITH TIME ZONE,
            attempts INTEGER NOT NULL DEFAULT 0, last_error VARCHAR(1000), locked_by VARCHAR(64),
            locked_until TIMESTAMP WITH TIME ZONE)
        SQL
        db.execute("CREATE INDEX #{name}_pending ON #{name} (published_at, created_at)")
      end

      def plain_idempotency(db, name)
        db.create_table(name, id: false) do |t|
          t.string :message_id, null: false, limit: 255, primary_key: true
          t.string :state, null: false, limit: 16
          t.string :claimed_by, limit: 64
          t.datetime :recorded_at, null: false
          t.datetime :expires_at, null: false
        end
        db.add_index(name, :expires_at, name: "#{name}_expiry")
      end

      def family_idempotency(db, name)
        db.execute(<<~SQL)
          CREATE TABLE #{name} (
            message_id VARCHAR(255) PRIMARY KEY, state VARCHAR(16) NOT NULL, claimed_by VARCHAR(64),
            recorded_at TIMESTAMP WITH TIME ZONE NOT NULL, expires_at TIMESTAMP WITH TIME ZONE NOT NULL)
        SQL
        db.execute("CREATE INDEX #{name}_expiry ON #{name} (expires_at)")
      end
    end

    # Records to put into an outbox.
    module OutboxRecords
      # @return [AMQP::Patterns::OutboxRecord]
      def outbox_record(id = SecureRandom.uuid, **members)
        AMQP::Patterns::OutboxRecord.new(id: id, exchange: "shop", routing_key: "order.placed", body: "{}",
                                         content_type: "application/json", headers: {}, **members)
      end

      # @param ids [Array<String>] added in this order, to one destination
      def add(*ids, **members)
        ids.each { |id| store.add(outbox_record(id, **members)) }
      end

      # @return [Array<String>] what a claim gets
      def claimed_ids(limit = 100, on: store, **options)
        on.claim(limit, **options).records.map(&:id)
      end
    end
  end
end

RSpec.configure do |config|
  config.include AceMQ::SpecSupport::OutboxTables
  config.include AceMQ::SpecSupport::OutboxRecords
end
