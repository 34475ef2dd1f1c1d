# frozen_string_literal: true

require "json"
require_relative "../../tracing"
require_relative "../outbox_record"
require_relative "../record"
require_relative "stored_body"

module AceMQ
  module AMQP
    module Patterns
      # A record as a row: what the wire or the column cannot carry is refused here, before anything is written,
      # because later it would stand in the way of every relay.
      #
      # @api private
      class OutboxRow
        NUL = "\0"

        # @param db [Dialects::Base]
        # @param table [Table]
        # @param record [OutboxRecord]
        def initialize(db, table, record)
          @db = db
          @table = table
          @record = record
        end

        # @return [Hash{String => String}] column to SQL
        # @raise [ArgumentError] naming the field, its size, and what to do
        def values
          body, encoding = body_and_encoding
          texts = { "id" => id, "exchange_name" => name("exchange_name", "exchange", @record.exchange),
                    "routing_key" => name("routing_key", "routing key", @record.routing_key),
                    "content_type" => name("content_type", "content type", @record.content_type),
                    "headers" => headers, "body" => body, "body_encoding" => encoding }
          texts.transform_values { |text| @db.quote(text) }
               .merge("created_at" => @db.time(created_at, @table["created_at"]), "attempts" => "0")
        end

        private

        def id
          id = name("id", "id", @record.id)
          raise ArgumentError, "an outbox record needs an id, which is also its message id" if id.empty?

          id
        end

        def name(column, field, value)
          text = ShortString.check!(value, field)
          limit = @table[column].limit
          if limit && text.length > limit
            raise ArgumentError, "#{field} is #{text.length} characters long and #{place(column)} holds #{limit}; shorten it"
          end
          raise ArgumentError, "#{field} #{text.inspect} contains a NUL, which no text column holds" if text.include?(NUL)
          return text if @table.writes?(column, text)

          raise ArgumentError, "#{field} #{text.inspect} has characters that #{place(column)} or the database connection " \
                               "cannot write; use utf8mb4 for both"
        end

        def body_and_encoding
          unless @record.body.is_a?(String)
            raise ArgumentError, "body must be the encoded bytes in a String, not #{@record.body.class}"
          end

          body, encoding = StoredBody.encode(@record.body) { |text| @table.writes?("body", text) }
          encoded = " (#{body.bytesize} in base64, because it is not plain text)" if encoding == StoredBody::BASE64
          check_size!("body", "body is #{@record.body.bytesize} bytes long#{encoded}", body)
          [body, encoding]
        end

        def headers
          headers = Headers.storable!(Tracing.carried(@record.headers))
          json = JSON.generate(headers)
          json = JSON.generate(headers, ascii_only: true) unless @table.writes?("headers", json)
          check_size!("headers", "headers are #{json.bytesize} bytes long as JSON", json)
          json
        end

        # Where a text column has a limit, it is one of bytes, and a server that is not strict cuts without a word.
        def check_size!(column, problem, text)
          limit = @table[column].limit
          if limit && text.bytesize > limit
            raise ArgumentError, "#{problem} and #{place(column)} holds #{limit}; make the column larger: " \
                                 "change_column #{@table.name.to_sym.inspect}, #{column.to_sym.inspect}, :text, limit: 16_777_215"
          end
          return unless @table.longest_statement && text.bytesize * 2 > @table.longest_statement

          check_statement!(problem, text)
        end

        # The server drops the connection over a longer one, and the transaction with it.
        def check_statement!(problem, text)
          written = @db.quote(text).bytesize
          return if written + STATEMENT_ROOM <= @table.longest_statement

          raise ArgumentError, "#{problem}, #{written} as SQL, and the server takes statements of " \
                               "#{@table.longest_statement} bytes; raise max_allowed_packet"
        end

        # For the rest of the statement, of which headers may be the largest part.
        STATEMENT_ROOM = 512 * 1024
        private_constant :STATEMENT_ROOM

        def created_at
          time = @record.created_at
          return RecordClock.tick if time.nil?
          return time.to_time if time.respond_to?(:to_time) && !time.is_a?(String)

          raise ArgumentError, "created_at must be a Time, not #{time.inspect}"
        end

        def place(column)
          "#{@table.name}.#{column}"
        end

        class << self
          # @param sql [OutboxSQL]
          # @param row [Array] in the order of {OutboxSQL#columns}
          # @return [OutboxRecord] with `error` set, and no body, when the row cannot be turned into a message
          def read(sql, row)
            id, exchange, routing_key, body, _, encoding, content_type, headers, written_at, attempts = row
            record = OutboxRecord.new(id: text(id), exchange: text(exchange), routing_key: text(routing_key),
                                      content_type: text(content_type), attempts: attempts.to_i)
            decode(record) do
              record.created_at = sql.db.read_time(written_at, sql.created_at)
              record.headers = headers_of(headers)
              record.body = StoredBody.decode(body, encoding)
            end
          end

          private

          # A row that cannot be read must not stop those beside it.
          def decode(record)
            yield
            record
          rescue ArgumentError, RangeError, TypeError => e
            record.tap { |broken| broken.error = "the stored row cannot be read: #{e.message}" }
          end

          def headers_of(json)
            headers = JSON.parse(text(json))
            raise ArgumentError, "its headers are not a JSON object" unless headers.is_a?(Hash)

            headers
          rescue JSON::ParserError
            raise ArgumentError, "its headers are not JSON"
          end

          # Columns of a binary type, and SQLite's blobs, come untagged.
          def text(value)
            value = value.to_s
            value.encoding == Encoding::BINARY ? String.new(value, encoding: Encoding::UTF_8) : value
          end
        end
      end
    end
  end
end
