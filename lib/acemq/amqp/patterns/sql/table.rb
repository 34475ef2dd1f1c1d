# frozen_string_literal: true

require_relative "low_water"

module AceMQ
  module AMQP
    module Patterns
      # What one table of one database can hold, read once per connection pool.
      #
      # @api private
      class Table
        # Optionally qualified: "acemq_outbox", "messaging.acemq_outbox".
        NAME = /\A[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?\z/

        # What a character set of a MySQL column or connection can write; everything else writes all of Unicode.
        REPERTOIRES = { "utf8" => :bmp, "utf8mb3" => :bmp, "ucs2" => :bmp,
                        "latin1" => :ascii, "ascii" => :ascii }.freeze
        BEYOND_BMP = /[\u{10000}-\u{10FFFF}]/

        class << self
          # @return [String]
          # @raise [ArgumentError]
          def name!(name)
            return name.to_s if NAME.match?(name.to_s)

            raise ArgumentError, "#{name.inspect} is no table name: letters, digits and underscores, 63 at most"
          end

          # @param db [Dialects::Base]
          # @param name [String]
          # @param definition [Module] answers `COLUMNS`, `KEY` and `INSTALL`
          # @raise [ConfigurationError] for a table that is absent or not what the store needs
          def read(db, name, definition)
            db.before_reading(name)
            place = "table #{name} in the #{db.product} database #{db.database.inspect}"
            unless db.connection.data_source_exists?(name)
              raise ConfigurationError, "#{place} does not exist: #{definition::INSTALL}"
            end

            new(db, name).tap { |table| check!(table, place, db, definition) }
          end

          private

          def check!(table, place, db, definition)
            missing = definition::COLUMNS - table.columns.keys
            unless missing.empty?
              raise ConfigurationError, "#{place} has no column #{missing.join(", ")}: #{definition::INSTALL}"
            end
            return if Array(db.connection.primary_key(table.name)) == [definition::KEY]

            raise ConfigurationError, "#{place} must have #{definition::KEY} as its primary key, because that is what " \
                                      "makes a second write of the same one harmless"
          end
        end

        # @return [String]
        attr_reader :name
        # @return [Hash{String => ActiveRecord::ConnectionAdapters::Column}]
        attr_reader :columns
        # @return [String] quoted for SQL
        attr_reader :quoted
        # @return [Array<ActiveRecord::ConnectionAdapters::IndexDefinition>]
        attr_reader :indexes
        # @return [Integer, nil] bytes of the longest statement that the server takes
        attr_reader :longest_statement
        # @return [LowWater]
        attr_reader :low_water

        def initialize(db, name)
          @name = name
          @quoted = db.connection.quote_table_name(name)
          @low_water = LowWater.new
          @columns = db.connection.columns(name).to_h { |column| [column.name, column] }
          @indexes = db.connection.indexes(name)
          @longest_statement = db.longest_statement
          @collations = db.collations(name, @columns)
          connection_charset = db.connection_charset
          @repertoires = @columns.transform_values { |column| narrower(db.charset(column), connection_charset) }
        end

        # @return [ActiveRecord::ConnectionAdapters::Column]
        def [](column)
          @columns.fetch(column)
        end

        # @param column [String]
        # @return [String, nil] by what texts of the column are compared; nil where that is their bytes
        def collation(column)
          @collations[column]
        end

        # @return [Boolean] whether the column's character set has all characters of the text
        def writes?(column, text)
          case @repertoires.fetch(column)
          when :unicode then true
          when :bmp then !BEYOND_BMP.match?(text)
          when :ascii then text.ascii_only?
          end
        end

        # @return [String] with "?" for what the column cannot write
        def writable(column, text)
          case @repertoires.fetch(column)
          when :unicode then text
          when :bmp then text.gsub(BEYOND_BMP, "?")
          when :ascii then text.encode(Encoding::US_ASCII, undef: :replace, replace: "?").encode(Encoding::UTF_8)
          end
        end

        private

        def narrower(*charsets)
          found = charsets.compact.map { |charset| REPERTOIRES.fetch(charset, :unicode) }
          %i[ascii bmp].find { |repertoire| found.include?(repertoire) } || :unicode
        end
      end
    end
  end
end
