# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # @api private
      class RawPostgreSQL < RawConnection
        # Characters of a name that the server keeps.
        LONGEST_NAME = 63

        def adapter_name
          "PostgreSQL"
        end

        def database
          select_value("SELECT current_database()")
        end

        # Right whatever `standard_conforming_strings` says.
        def quote_text(text)
          return "'#{text.gsub("'", "''")}'" unless text.include?("\\")

          " E'#{text.gsub(/['\\]/) { |character| character * 2 }}'"
        end

        # Without the notice that the server would give, on standard error, at every start of an application.
        def create(statement)
          name, table = statement.match(/IF NOT EXISTS (\S+)(?:\s+ON\s+(\S+))?/).captures
          super unless table ? index?(table, name) : data_source_exists?(name)
        end

        # @return [Array<Column>]
        def columns(table)
          execute(<<~SQL).rows.map { |name, type, collation| column(name, type, collation) }
            SELECT a.attname, format_type(a.atttypid, a.atttypmod), c.collname
              FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
              LEFT JOIN pg_collation c ON c.oid = a.attcollation AND a.attcollation <> t.typcollation
             WHERE a.attrelid = to_regclass(#{quote(table)}) AND a.attnum > 0 AND NOT a.attisdropped
          SQL
        end

        def primary_key(table)
          indexed(table, "indisprimary").flat_map(&:columns)
        end

        # @return [Array<Index>]
        def indexes(table)
          indexed(table, "NOT indisprimary")
        end

        private

        # Not by its name alone, which a table of another schema may have for one of its own.
        def index?(table, name)
          indexes(table).any? { |index| index.name.casecmp?(name[0, LONGEST_NAME]) }
        end

        def indexed(table, condition)
          execute(<<~SQL).rows.map { |name, columns, where| Index.new(name, columns.split(","), where) }
            SELECT c.relname, array_to_string(ARRAY(
                     SELECT pg_get_indexdef(i.indexrelid, k, true) FROM generate_series(1, i.indnkeyatts) k ORDER BY k), ','),
                   pg_get_expr(i.indpred, i.indrelid)
              FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
             WHERE i.indrelid = to_regclass(#{quote(table)}) AND i.indisvalid AND #{condition}
          SQL
        end
      end
    end
  end
end
