# frozen_string_literal: true

require_relative "base"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # PostgreSQL 12 and later, in READ COMMITTED, its default.
        #
        # @api private
        class PostgreSQL < Base
          # Destinations looked at in one statement; a table with more is walked in several.
          HEADS = 1_000

          INDEX = %w[exchange_name routing_key created_at id].freeze

          # See {#along_index}.
          ALONG_INDEX = "SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off"

          NEEDS = "PostgreSQL 12 or newer"

          def product
            "PostgreSQL"
          end

          # With statistics from a quiet moment, the plain condition reads every pending row through a partial
          # index, however few ids stand beside it.
          def unpublished
            "COALESCE(published_at, 'infinity') = 'infinity'"
          end

          def byte_length(column)
            "octet_length(#{column})"
          end

          # A database, or a client, in another encoding than UTF-8 may lack any character beyond ASCII.
          def connection_charset
            %w[server_encoding client_encoding].all? { |side| connection.select_value("SHOW #{side}") == "UTF8" } ? nil : "ascii"
          end

          # The clock and not `now()`, which stands still inside a transaction, and specs run everything inside one.
          def now(column)
            return "clock_timestamp()" if zoned?(column)

            "(clock_timestamp() AT TIME ZONE INTERVAL '#{offset} seconds')"
          end

          def from_now(column, seconds)
            "#{now(column)} + INTERVAL '#{seconds.to_f.round(6)} seconds'"
          end

          def time(time, column)
            return quote(nominal.format(time)) unless zoned?(column)

            quote(time.getutc.strftime("%Y-%m-%d %H:%M:%S.%6N+00"))
          end

          def readable_time(column)
            "(extract(epoch FROM #{column.name}) * 1000000)::bigint"
          end

          def read_time(microseconds, column)
            return nominal.at(microseconds.to_i) unless zoned?(column)

            NominalTime.utc(microseconds.to_i)
          end

          def destination_index?(index)
            index.columns == INDEX && index.where.to_s.match?(/published_at IS NULL/i)
          end

          def version
            rows("SHOW server_version", "AceMQ check").dig(0, 0)
          end

          # @return [String] the isolation that sessions begin with
          def isolation
            rows("SHOW default_transaction_isolation", "AceMQ check").dig(0, 0)
          end

          def usual_isolation
            "read committed"
          end

          def isolation_strict?(level)
            level != usual_isolation
          end

          # @return [Array<String>] how the server would find candidates
          def claim_plan(sql)
            connection.execute("#{ALONG_INDEX}; EXPLAIN #{heads(sql, nil, 100)}", "AceMQ plan").values.flatten
          end

          # @return [DestinationPage]
          def destination_page(sql, after, size)
            found = look(sql, after, size)
            ends, found = found.partition { |id, *| id.nil? }
            full = found.last[1, 2] if found.size >= size
            DestinationPage.new(found, full || ends.first&.slice(1, 2))
          end

          # @return [Array<Array>] the rows that could be leased, as {OutboxRow.read} takes them, oldest first
          def lease(sql, ids, token, seconds)
            lease_where(sql, "id IN (#{list(ids)}) AND #{sql.leasable}", token, seconds)
          end

          # @return [Array<Array>] the oldest rows that are free, see {#lease}
          def lease_oldest(sql, limit, token, seconds)
            lease_where(sql, "#{sql.claimable} AND #{sql.free} ORDER BY created_at, id LIMIT #{limit}", token, seconds)
          end

          # @return [Float, nil] seconds
          def oldest_age(sql)
            age = "SELECT max(#{seconds_since(sql.created_at)}) FROM"
            found = if sql.destination_index
                      along_index("WITH RECURSIVE #{head_rows(sql, nil)} #{age} head", "AceMQ age")
                    else
                      rows("#{age} #{sql.table.quoted} WHERE #{sql.live}", "AceMQ age")
                    end
            found.dig(0, 0)&.to_f
          end

          # A snapshot's end is no number that nobody has yet, only the one after the last that is over: so one is drawn.
          #
          # A transaction that is open here sees what it has done itself, and may yet undo.
          #
          # @param names [Array<Array(String, String)>] destinations that are known
          # @return [LowWater::Reading, nil] nil where it cannot be said, or would take too long to find out
          def low_water(sql, names)
            return if connection.transaction_open? || !plain_order?(sql)

            found = along_index(<<~SQL, "AceMQ low water")
              WITH RECURSIVE #{head_rows(sql, nil)}
              SELECT exchange_name, routing_key, #{readable_time(sql.created_at)}, extract(epoch FROM now()),
                     txid_snapshot_xmin(txid_current_snapshot()), txid_current()
                FROM (SELECT) once LEFT JOIN (#{destinations(sql, names)}) known ON TRUE ORDER BY exchange_name, routing_key
            SQL
            reading(sql, found) if found.size <= LowWater::KNOWN
          rescue StandardError => e
            # A statement_timeout, a row of the year infinity: claims go on without.
            raise unless (e.cause || e).is_a?(::PG::Error)
          end

          # @return [Integer]
          def purge(table, condition, key:, order:, batch:)
            change(<<~SQL, "AceMQ purge")
              DELETE FROM #{table.quoted} WHERE #{key} IN (
                SELECT #{key} FROM #{table.quoted} WHERE #{condition} ORDER BY #{order} LIMIT #{batch} FOR UPDATE SKIP LOCKED)
            SQL
          end

          # A key that is there already costs no write: DO UPDATE would lock its row and cost a sync for every duplicate.
          #
          # @return [Symbol] {Claim} value, or {IdempotencySQL::TAKEN_OVER}
          def claim(sql, key, owner)
            state, stale = rows(<<~SQL, "AceMQ claim").first
              WITH won AS (#{insert_into(sql.table, sql.claimed_row(key, owner))} ON CONFLICT (message_id) DO NOTHING RETURNING 1)
              SELECT 'WON', 0 FROM won
              UNION ALL #{sql.look(key)} AND NOT EXISTS (SELECT 1 FROM won)
            SQL
            state == "WON" ? Claim::CLAIMED : sql.answer(state, stale) { take_over(sql, key, owner) }
          end

          # A column under a collation of its own, or of a type that ignores case, may not go by bytes.
          def collations(table, columns)
            super.merge(columns.transform_values(&:sql_type).select { |_, type| type == "citext" })
          end

          private

          def seconds_since(column)
            "extract(epoch FROM #{now(column)} - #{column.name})"
          end

          def least_version
            Gem::Version.new("12")
          end

          def clock_reading
            "extract(epoch FROM clock_timestamp())"
          end

          # @return [Array<Array>] id, exchange, routing key, 0, time; of a row without an id see {#heads}
          def look(sql, after, size)
            return rows(backlog(sql, after, size), "AceMQ claim") unless sql.destination_index

            stretches = sql.mark&.stretches(after)
            found = along_index(stretches ? near_heads(sql, stretches, size) : heads(sql, after, size), "AceMQ claim")
            sql.table.low_water.saw(found.map { |row| row[1, 2] }.uniq)
            stretches ? found.reject { |id, *| id.nil? } : found
          end

          # Years before the first are written in another way.
          def reading(sql, found)
            heads = found.filter_map { |exchange, key, time| [exchange, key, time && read_time(time, sql.created_at)] if exchange }
            return if heads.any? { |*, time| time && time.year < 1 }

            at, unfinished, unbegun = found.first[3, 3]
            LowWater::Reading.new(heads: heads, at: Time.at(at.to_r).utc, unfinished: unfinished.to_i, unbegun: unbegun.to_i)
          end

          # Destinations are compared here as the index has them, and times are shown once.
          def plain_order?(sql)
            sql.destination_index && destination_types(sql).all?(/\A(text|character varying)/) &&
              INDEX.first(2).none? { |column| sql.table.collation(column) } && (zoned?(sql.created_at) || !nominal.local?)
          end

          # While it takes the table for an empty one, the planner would rather read and sort the whole backlog for each
          # destination than walk along the index. And it takes a walk for so long that it compiles it first, for a
          # second, where the walk itself takes a thousandth of that. The settings are gone with the statement; in
          # somebody's transaction, where they would stay, they are left alone.
          def along_index(select, name)
            return rows(select, name) if connection.transaction_open?

            connection.execute("#{ALONG_INDEX}; #{select}", name).values
          end

          # A standby, or a session that began while writing was off.
          def read_only?(error)
            (error.cause || error).is_a?(::PG::ReadOnlySqlTransaction)
          end

          def lease_where(sql, condition, token, seconds)
            rows(<<~SQL, "AceMQ lease")
              WITH mine AS MATERIALIZED (SELECT id FROM #{sql.table.quoted} WHERE #{condition} FOR UPDATE SKIP LOCKED),
              leased AS (
                UPDATE #{sql.table.quoted} t SET #{sql.lease(token, seconds)} FROM mine WHERE t.id = mine.id RETURNING t.*)
              SELECT #{sql.columns(sql.short_body)} FROM leased ORDER BY created_at, id
            SQL
          end

          # From the first live row of each destination, which costs one look into the index, to its first held row.
          # A row without an id says where to go on. No more heads are looked for than it takes to fill the page, and
          # none is looked for twice: beside an open snapshot every row published since stands before the head, dead.
          def heads(sql, after, size)
            <<~SQL
              WITH RECURSIVE #{head_rows(sql, after)},
              #{pick(sql, size)}
              SELECT id, exchange_name, routing_key, 0, created_at FROM pick
              UNION ALL SELECT NULL, exchange_name, routing_key, 1, NULL FROM head
               WHERE depth = #{HEADS} AND (SELECT COUNT(*) FROM pick) < #{size}
              ORDER BY exchange_name, routing_key, created_at, id
            SQL
          end

          # The same, looking at the heads where they are known to be and once between every two of them. A row without an id
          # is that of a held head: of whatever is behind it in its stretch nothing is seen.
          def near_heads(sql, stretches, size)
            <<~SQL
              WITH stretch (kind, exchange, low, high, since) AS (VALUES #{stretches.map { |one| stretch(sql, one) }.join(", ")}),
              head AS (SELECT h.* FROM stretch s CROSS JOIN LATERAL (#{looks(sql)}) h),
              #{pick(sql, size)}
              SELECT id, exchange_name, routing_key, 0, created_at FROM pick
              UNION ALL SELECT NULL, exchange_name, routing_key, 1, NULL FROM head WHERE held
              ORDER BY exchange_name, routing_key, created_at, id
            SQL
          end

          def stretch(sql, stretch)
            stretch.text ||= begin
              texts = [stretch.exchange, stretch.low, stretch.high].map { |text| "#{text ? quote(text) : "NULL"}::text" }
              "('#{stretch.kind}', #{texts.join(", ")}, #{time(stretch.since, sql.created_at)}::#{sql.created_at.sql_type})"
            end
          end

          # Those that have a head, and those that are known.
          def destinations(sql, names)
            heads = "SELECT exchange_name, routing_key, created_at FROM head"
            heads += " UNION ALL SELECT *, NULL FROM (VALUES #{names.map { |name| typed(sql, name) }.join(", ")}) names" if names.any?
            "SELECT exchange_name, routing_key, min(created_at) AS created_at FROM (#{heads}) every GROUP BY 1, 2"
          end

          def typed(sql, name)
            "(#{name.zip(destination_types(sql)).map { |text, type| "#{quote(text)}::#{type}" }.join(", ")})"
          end

          def destination_types(sql)
            INDEX.first(2).map { |column| sql.table[column].sql_type }
          end

          # One for each kind of stretch, of which a stretch takes its own.
          def looks(sql)
            columns = INDEX.join(", ")
            LowWaterMark::KINDS.map do |kind, condition|
              "(SELECT #{columns}, #{sql.held} AS held FROM #{sql.table.quoted} WHERE s.kind = '#{kind}' AND #{condition} " \
                "AND #{sql.live} AND created_at >= s.since ORDER BY #{columns} LIMIT 1)"
            end.join(" UNION ALL ")
          end

          def pick(sql, size)
            <<~SQL.strip
              pick AS MATERIALIZED (
                SELECT r.id, o.exchange_name, o.routing_key, r.created_at
                  FROM (SELECT * FROM head WHERE NOT held) o
                 CROSS JOIN LATERAL (
                   SELECT w.id, w.created_at FROM (
                     SELECT p.id, p.created_at, bool_and(NOT p.held) OVER (ORDER BY p.created_at, p.id) AS open FROM (
                       SELECT id, created_at, #{sql.held} AS held FROM #{sql.table.quoted}
                        WHERE #{sql.live} AND exchange_name = o.exchange_name AND routing_key = o.routing_key
                          AND (created_at, id) >= (o.created_at, o.id)
                        ORDER BY created_at, id LIMIT #{size}) p) w
                    WHERE w.open) r
                 LIMIT #{size})
            SQL
          end

          def head_rows(sql, after)
            columns = INDEX.join(", ")
            one = "FROM #{sql.table.quoted} WHERE #{sql.claimable} %s ORDER BY #{columns} LIMIT 1"
            <<~SQL.strip
              head AS (
                (SELECT 1 AS depth, #{columns}, #{sql.held} AS held #{format(one, behind(after))})
                UNION ALL
                SELECT h.depth + 1, n.* FROM head h CROSS JOIN LATERAL (
                  SELECT #{columns}, #{sql.held} AS held
                  #{format(one, "AND (exchange_name, routing_key) > (h.exchange_name, h.routing_key)")}) n
                 WHERE h.depth < #{HEADS})
            SQL
          end

          # Without the index every look at a head would read the whole backlog; so it is read once.
          def backlog(sql, after, size)
            <<~SQL
              SELECT id, exchange_name, routing_key, 0, created_at FROM (
                SELECT id, exchange_name, routing_key, created_at, bool_and(NOT #{sql.held}) OVER (
                         PARTITION BY exchange_name, routing_key ORDER BY created_at, id) AS open
                  FROM #{sql.table.quoted} WHERE #{sql.claimable} #{behind(after)}) w
               WHERE open ORDER BY exchange_name, routing_key, created_at, id LIMIT #{size}
            SQL
          end

          def behind(destination)
            "AND (exchange_name, routing_key) > (#{list(destination)})" if destination
          end
        end
      end
    end
  end
end
