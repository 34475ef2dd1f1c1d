# frozen_string_literal: true

require "digest"

module AceMQ
  module AMQP
    module Patterns
      # An idempotency key as the column can keep it and tell it apart from every other: as it is where that is
      # possible, else its beginning and a digest of the whole.
      #
      # @api private
      module StoredKey
        LIMIT = 255
        DIGEST = 64 # hex digits

        # Looks like a digest's end: kept as it is, it could be the stored form of another key.
        DIGESTED = /:\h{#{DIGEST}}\s*\z/

        # Types whose limit is one of bytes.
        BINARY = /binary|blob|bytea/i

        # What no collation takes for anything else.
        PLAIN = %r{\A[a-z0-9:_./-]*\z}

        class << self
          # @param db [Dialects::Base]
          # @param table [Table]
          # @param key [String]
          # @return [String]
          def of(db, table, key)
            column = table["message_id"]
            limit = column.limit || LIMIT
            text = Text.utf8(key)
            return text if text && keepable?(table, text, limit) && apart?(db, table, text)

            digested(key, text, limit)
          end

          # A store that stood on the same table before may have kept the key as it is.
          #
          # @return [String, nil] how, where that is not {.of}
          def of_others(db, table, key)
            column = table["message_id"]
            text = Text.utf8(key)
            text if text && keepable?(table, text, column.limit || LIMIT) && !apart?(db, table, text)
          end

          private

          def keepable?(table, text, limit)
            length = BINARY.match?(table["message_id"].sql_type) ? text.bytesize : text.length
            length <= limit && !text.include?("\0") && table.writes?("message_id", text)
          end

          def apart?(db, table, text)
            !DIGESTED.match?(text) && (PLAIN.match?(text) || !db.lookalikes?(table.collation("message_id"), text))
          end

          # ASCII only, because the column may have no more.
          def digested(key, text, limit)
            beginning = (text || key.b).encode(Encoding::US_ASCII, invalid: :replace, undef: :replace, replace: "?")
            "#{beginning.delete("\0")[0, limit - DIGEST - 1]}:#{Digest::SHA256.hexdigest(key)}"
          end
        end
      end
    end
  end
end
