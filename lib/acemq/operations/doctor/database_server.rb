# frozen_string_literal: true

require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # The database server: its version, its isolation, its clock.
      class DatabaseServer
        # Seconds by which two clocks may differ without anybody noticing.
        CLOSE = 1.0

        # @param outbox [Outboxes::Named]
        def initialize(outbox)
          @outbox = outbox
          @store = outbox.store
        end

        # @return [Array<Finding>]
        def examine
          @store.examine { |sql| [version(sql.db), isolation(sql.db), clock(sql.db), pool(sql.db)].compact }
        end

        private

        def version(db)
          return Finding.ok("database", "#{db.product} #{db.version}") if db.version_supported?

          Finding.error("database", "#{db.product} #{db.version} is older than what claims need", "upgrade: #{db.class::NEEDS}")
        end

        def isolation(db)
          level = db.isolation
          return Finding.ok("isolation", level) unless db.isolation_strict?(level)

          Finding.warning("isolation", "#{level}: claims and marks meet serialization failures, and are tried again at the next look",
                          "let the relay's sessions use #{db.usual_isolation}")
        end

        # Leases and backoff are the database's; `created_at`, and with it order and age, is the application's.
        def clock(db)
          before = Time.now.to_f
          database = db.clock
          now = (before + Time.now.to_f) / 2
          skew = now - database
          return Finding.ok("clocks", format("application and database differ by %.2f s", skew.abs)) if skew.abs <= CLOSE

          Finding.warning("clocks", format("this machine is %.1f s %s the database", skew.abs, skew.positive? ? "ahead of" : "behind"),
                          "run NTP on both: rows of different machines go out in the order of their clocks")
        end

        def pool(db)
          size = db.connection.pool.size
          Finding.ok("pool", "#{size} connections; a relay needs one while it works")
        end
      end
    end
  end
end
