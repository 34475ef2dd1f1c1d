# frozen_string_literal: true

require_relative "../../../clock"

module AceMQ
  module AMQP
    module Patterns
      module Dialects
        # Waits for a locked SQLite file in Ruby.
        #
        # Before ActiveRecord 8 the driver waits with Ruby's global lock in its hand: the whole process stands
        # still, and with it the thread that could give the file free.
        #
        # @api private
        class SQLitePatience
          PAUSES = (0.001..0.025) # seconds
          DEFAULT_TIMEOUT = 5_000 # milliseconds, where the database's configuration names none

          # Ruby doubles a thread's slice of time with every step.
          UNDISTURBED = 3

          class << self
            # @return [Boolean] whether ActiveRecord has the driver wait without Ruby's global lock
            def fair?
              ::ActiveRecord::VERSION::MAJOR >= 8
            end

            # @param error [Exception] the driver's own, or ActiveRecord's about it
            def busy?(error)
              (error.cause || error).is_a?(::SQLite3::BusyException)
            end
          end

          # @param connection [ActiveRecord::ConnectionAdapters::SQLite3Adapter, RawSQLite]
          def initialize(connection)
            @connection = connection
          end

          # Inside a transaction the statement is one of its own: it waits as that one is set up to.
          #
          # @return [Object] the block's result
          def run(&block)
            return yield if @connection.transaction_open? || fair?

            without_waiting { again_while_busy(&block) }
          end

          private

          def raw?
            !@connection.respond_to?(:pool)
          end

          # A raw connection without a timeout does not wait, or waits in a way of its owner's own.
          def fair?
            raw? ? configuration[:timeout].zero? : self.class.fair?
          end

          def configuration
            @configuration ||= raw? ? { timeout: @connection.busy_timeout } : @connection.pool.db_config.configuration_hash
          end

          def without_waiting
            raw = @connection.raw_connection
            raw.busy_timeout(0)
            yield
          ensure
            restore(raw) if raw
          end

          def restore(raw)
            retries = configuration[:retries]
            if retries
              raw.busy_handler { |count| count <= retries.to_i }
            else
              raw.busy_timeout(configuration[:timeout].to_i)
            end
          end

          def again_while_busy(&block)
            deadline = Clock.now + ((configuration[:timeout] || DEFAULT_TIMEOUT).to_i / 1000.0)
            begin
              undisturbed(&block)
            rescue StandardError => e
              raise unless self.class.busy?(e) && Clock.now < deadline

              sleep rand(PAUSES)
              retry
            end
          end

          # A thread that is switched away from between two rows of a SELECT keeps its lock meanwhile, and a thread that
          # wants to commit waits for it in the way said above. So the switch should come before or after.
          def undisturbed
            thread = Thread.current
            before = thread.priority
            thread.priority = before + UNDISTURBED
            yield
          ensure
            thread.priority = before
          end
        end
      end
    end
  end
end
