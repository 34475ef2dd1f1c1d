# frozen_string_literal: true

require_relative "../sql"

module AceMQ
  module AMQP
    module Patterns
      # A driver's connection with as much of ActiveRecord's adapter as {Dialects} and {Table} ask of one.
      #
      # @api private
      class RawConnection
        # As {Table} and {Dialects} know columns and indexes.
        Column = Struct.new(:name, :sql_type, :limit, :precision, :collation)
        Index = Struct.new(:name, :columns, :where)

        LIMIT = /char\w*(?: varying)?\((\d+)\)/i

        # @param driver [PG::Connection, SQLite3::Database, #run]
        # @return [RawPostgreSQL, RawSQLite]
        # @raise [ArgumentError]
        def self.of(driver)
          seam = SQL.connect(driver)
          (seam.placeholder(1) == "?" ? RawSQLite : RawPostgreSQL).new(seam)
        end

        # @param seam [#run] see {SQL}
        def initialize(seam)
          @seam = seam
        end

        # @return [SQL::Result]
        def execute(sql, _name = nil)
          result = @seam.run(sql, [])
          result.rows.map! { |row| row.is_a?(Hash) ? row.values : row }
          result
        end
        alias exec_query execute

        # @return [Integer] rows changed
        def update(sql, name = nil)
          execute(sql, name).affected
        end

        # @return [Object] the first value of the first row
        def select_value(sql)
          execute(sql).rows.dig(0, 0)
        end

        # @param statement [String] "CREATE ... IF NOT EXISTS name ..."
        def create(statement)
          execute(statement)
        end

        # Taken for open where that cannot be known: then nothing is done that might disturb one.
        def transaction_open?
          @seam.respond_to?(:transaction_open?) ? @seam.transaction_open? : true
        end

        def verify!
          @seam.verify! if @seam.respond_to?(:verify!)
        end

        def reconnect!
          @seam.reconnect! if @seam.respond_to?(:reconnect!)
        end

        # @return [Object] the driver's own
        def raw_connection
          @seam.raw
        end

        def data_source_exists?(table)
          !columns(table).empty?
        end

        def quote(value)
          case value
          when nil then "NULL"
          when Numeric then value.to_s
          else quote_text(SQL.key(value))
          end
        end

        # As it is, so that upper and lower case mean what they mean to whoever made the table. {Table.name!} has
        # seen it.
        def quote_table_name(name)
          name
        end

        def quote_column_name(name)
          "\"#{name}\""
        end

        private

        def column(name, type, collation = nil)
          Column.new(name, type, type[LIMIT, 1]&.to_i, nil, collation)
        end
      end
    end
  end
end

require_relative "raw_postgresql"
require_relative "raw_sqlite"
