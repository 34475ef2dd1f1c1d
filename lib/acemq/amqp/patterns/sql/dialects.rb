# frozen_string_literal: true

require_relative "dialects/postgresql"
require_relative "dialects/mysql"
require_relative "dialects/sqlite"

module AceMQ
  module AMQP
    module Patterns
      # The SQL of each database, one object each, made for the connection it is used on and never kept: adapters
      # replace their connection after some failures.
      #
      # @api private
      module Dialects
        ADAPTERS = { /postg/i => PostgreSQL, /mysql|trilogy/i => MySQL, /sqlite/i => SQLite }.freeze

        # @param connection [ActiveRecord::ConnectionAdapters::AbstractAdapter]
        # @return [Base]
        # @raise [ConfigurationError] for a database that is none of the three
        def self.for(connection)
          adapter = connection.adapter_name
          dialect = ADAPTERS.find { |pattern, _| pattern.match?(adapter) }&.last
          return dialect.new(connection) if dialect

          raise ConfigurationError, "the #{adapter} adapter is not supported: PostgreSQL, MySQL, MariaDB and SQLite are"
        end
      end
    end
  end
end
