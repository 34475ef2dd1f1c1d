# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Gives the columns of a table that came from elsewhere what those of a table have that is made today. Rows keep
      # what is in them.
      #
      # @api private
      class TableUpdate
        MICROSECONDS = 6
        COLLATION = "utf8mb4_bin"
        # Of MySQL and MariaDB: this alteration cannot be done while writers go on.
        NOT_ONLINE = [1845, 1846].freeze

        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        # @param name [String] the table's
        # @param definition [Module] answers `COLUMNS`; those of them that are texts of any length `LARGE`
        def initialize(connection, name, definition)
          @connection = connection
          @name = name
          @large = definition::LARGE
          @columns = connection.columns(name).select { |column| definition::COLUMNS.include?(column.name) }
        end

        # @return [nil]
        def call
          case Dialects.for(@connection)
          when Dialects::MySQL then update_mysql
          when Dialects::PostgreSQL then update_postgresql
          end
          Database::TABLES.clear
          nil
        end

        private

        # One statement, because each may copy the table.
        def update_mysql
          changes = [collation, *times.map { |column| "MODIFY #{definition(column, "DATETIME(#{MICROSECONDS})")}" },
                     *short.map { |column| "MODIFY #{definition(column, "MEDIUMTEXT")}" }].compact
          alter(changes) if changes.any?
        end

        # MariaDB 11.2 copies a table beside its writers; others say that they cannot.
        def alter(changes)
          statement = "ALTER TABLE #{@connection.quote_table_name(@name)} #{changes.join(", ")}"
          @connection.execute("#{statement}, LOCK=NONE")
        rescue ::ActiveRecord::StatementInvalid => e
          raise unless e.cause.respond_to?(:error_number) && NOT_ONLINE.include?(e.cause.error_number)

          @connection.execute(statement)
        end

        def definition(column, type)
          text = " CHARACTER SET utf8mb4 COLLATE #{COLLATION}" if type == "MEDIUMTEXT"
          "#{@connection.quote_column_name(column.name)} #{type}#{text} #{"NOT " unless column.null}NULL"
        end

        # Ids, and destinations, that differ in case or accents only are different ones.
        def collation
          return if @columns.all? { |column| column.collation.nil? || column.collation == COLLATION }

          "CONVERT TO CHARACTER SET utf8mb4 COLLATE #{COLLATION}"
        end

        def times
          @columns.select { |column| column.type == :datetime && column.precision.to_i < MICROSECONDS }
        end

        def short
          @columns.select { |column| @large.include?(column.name) && column.limit && column.limit < OutboxTable::LONGEST_BODY }
        end

        # More digits are a matter of the catalogue; a type without a number has all of them.
        def update_postgresql
          coarse = @columns.select { |column| column.sql_type.start_with?("timestamp") && column.precision }
          coarse.reject { |column| column.precision == MICROSECONDS }.each do |column|
            zone = column.sql_type.match?(/with time zone|timestamptz/) ? "with" : "without"
            @connection.execute("ALTER TABLE #{@connection.quote_table_name(@name)} ALTER COLUMN #{column.name} " \
                                "TYPE timestamp(#{MICROSECONDS}) #{zone} time zone")
          end
        end
      end
    end
  end
end
