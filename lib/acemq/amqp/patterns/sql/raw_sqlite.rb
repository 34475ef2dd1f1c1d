# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # @api private
      class RawSQLite < RawConnection
        # How a column or an index of a table's own making is to be compared.
        COLLATION = /\bCOLLATE\s+"?(\w+)/i
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
          collations = collations(table)
          table_info(table).map { |_, name, type| column(name, type, collations[name]) }
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

        # A table's collations are in its statement only.
        def collations(table)
          statement = select_value("SELECT sql FROM sqlite_master WHERE type = 'table' " \
                                   "AND lower(name) = lower(#{quote(table)})").to_s
          statement.split(",").each_with_object({}) do |part, found|
            collation = part[COLLATION, 1] or next
            found[part[/["`\[]?(\w+)["`\]]?\s+[a-z]\w*/i, 1]] = collation
          end
        end
      end
    end
  end
end
