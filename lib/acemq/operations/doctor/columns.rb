# frozen_string_literal: true

require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # What the columns of a table from elsewhere hold less of than those of a table that is made today.
      class Columns
        UPDATE = "bin/rails generate acemq:update, then bin/rails db:migrate"
        MICROSECONDS = 6

        # @param subject [String] what to call the table
        # @param sql [#db, #table] the words of its database
        def initialize(subject, sql)
          @subject = subject
          @db = sql.db
          @table = sql.table
        end

        # Leases and claims end up to a second late without them, and rows of a second are told apart by id alone.
        #
        # @param names [Array<String>] of times
        # @return [Finding, nil]
        def precise(*names)
          coarse = names.select { |name| coarse?(@table[name]) }
          return if coarse.empty?

          Finding.warning(@subject, "#{coarse.join(", ")} have no microseconds: what is of the same second has no order of its own", UPDATE)
        end

        # @param names [Array<String>] of texts
        # @return [Finding, nil]
        def exact(*names)
          loose = names.select { |name| @db.lookalikes?(@table.collation(name), "a") }
          return if loose.empty?

          Finding.warning(@subject, "#{loose.join(", ")} take texts that differ in case or accents for the same", UPDATE)
        end

        private

        # Where a type without a number has none, and where it has all of them.
        def coarse?(column)
          case @db
          when AMQP::Patterns::Dialects::MySQL then column.precision.to_i < MICROSECONDS
          when AMQP::Patterns::Dialects::PostgreSQL then column.precision && column.precision < MICROSECONDS
          end
        end
      end
    end
  end
end
