# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module SQL
        # A `PG::Connection`, whatever type maps and encodings it is set up with.
        class PGDriver
          DUPLICATE = "23505"

          # @return [PG::Connection]
          attr_reader :raw

          # @param raw [PG::Connection]
          def initialize(raw)
            @raw = raw
          end

          # Without parameters the SQL may be several statements, of which the last one's result counts.
          #
          # @param sql [String]
          # @param params [Array]
          # @return [Result] values as text
          # @raise [PG::Error]
          def run(sql, params = [])
            result = params.empty? ? raw.exec(sql) : raw.exec_params(sql, params.map { |value| bound(value) })
            result.type_map = ::PG::TypeMapAllStrings.new
            Result.new(result.each_row.map { |row| row.map { |value| text(value) } }, result.cmd_tuples)
          ensure
            result&.clear
          end

          # @return [String]
          def placeholder(index)
            "$#{index}"
          end

          # @return [Boolean] whether the error says that the key is there already, and nothing else
          def constraint_violation?(error)
            error.is_a?(::PG::Error) && error.result&.error_field(::PG::PG_DIAG_SQLSTATE) == DUPLICATE
          end

          # @return [Boolean]
          def transaction_open?
            [::PG::PQTRANS_ACTIVE, ::PG::PQTRANS_INTRANS, ::PG::PQTRANS_INERROR].include?(raw.transaction_status)
          end

          # Connects again where the connection is broken.
          def verify!
            reconnect! unless raw.status == ::PG::CONNECTION_OK
          end

          def reconnect!
            raw.reset
          end

          private

          def bound(value)
            value.is_a?(String) ? SQL.key(value) : value
          end

          def text(value)
            return value if value.nil? || value.encoding == Encoding::UTF_8
            return value.force_encoding(Encoding::UTF_8) if value.encoding == Encoding::BINARY

            value.encode(Encoding::UTF_8)
          end
        end
      end
    end
  end
end
