# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # @api private
      class RawSQLite < RawConnection
        WHERE = /\bWHERE\b(.*)\z/im

        def adapter_name
          "SQLite"
        end

        def database
          execute("PRAGMA database_list").rows.dig(0, 2).to_s
        end

        # @return [Integer] milliseconds that the driver waits for a locked file
        def busy_timeout
          select_value("PRAGMA busy_timeout").to_i
        end

        def quote_text(text)
          "'#{text.gsub("'", "''")}'"
        end

        # @return [Array<Column>]
        def columns(table)
          table_info(table).map { |_, name, type| column(name, type) }
        end

        def primary_key(table)
          table_info(table).select { |row| row[5].to_i.positive? }.sort_by { |row| row[5].to_i }.map { |row| row[1] }
        end

        # @return [Array<Index>]
        def indexes(table)
          made = execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL " \
                         "AND lower(tbl_name) = lower(#{quote(table)})").rows
          made.map { |name, sql| Index.new(name, indexed_columns(name), sql[WHERE, 1]) }
        end

        private

        def table_info(table)
          execute("PRAGMA table_info(#{table})").rows
        end

        def indexed_columns(name)
          execute("PRAGMA index_info(#{quote_column_name(name)})").rows.map { |row| row[2] }
        end
      end
    end
  end
end
