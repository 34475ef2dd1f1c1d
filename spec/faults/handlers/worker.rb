# frozen_string_literal: true

require "acemq_native"
require "active_record"
require "json"

module AceMQ
  module Faults
    # A consumer in a process of its own: an idempotent handler that writes one row per message, and may die by SIGKILL in
    # the middle of it. What it has to say goes to its output, a line of JSON each.
    class Worker
      # What `first_time?` alone can say.
      OnlyFirstTime = Struct.new(:store) do
        def first_time?(key) = store.first_time?(key)
        def forget(key) = store.forget(key)
      end

      # @param settings [Hash]
      #   `database`, `url`, `queue`: where; `name`: to the broker; `store`: "claim", or "first_time" for one that answers
      #   only that; `claim_timeout` in seconds; `concurrency`: handlers at a time; `stall`: seconds that a handler stands
      #   still; `mortality`: the probability of dying at each of the handler's four places
      # @param input [IO] begins with its first line, ends with it
      # @param output [IO]
      def initialize(settings, input, output)
        @settings = settings
        @input = input
        @output = output
        @lock = Mutex.new
      end

      def run
        ActiveRecord::Base.establish_connection(@settings[:database].merge(pool: 20))
        @keys = AMQP::Patterns::ActiveRecordIdempotencyStore.new(claim_timeout: @settings[:claim_timeout])
        @once = AMQP::Patterns.idempotent(store, in_progress_delay: 0.25) { |message| handle(message) }
        @connection = AMQP::Connection.open(@settings[:url], client_name: @settings[:name])
        say("booted")
        return unless @input.gets

        consume
        @input.read
        @connection.close(timeout: 5)
      end

      private

      def consume
        concurrency = @settings[:concurrency]
        @connection.consume(@settings[:queue], concurrency: concurrency, prefetch: concurrency * 2) do |message|
          ActiveRecord::Base.connection_pool.with_connection { @once.call(message) }.tap do |answer|
            say("answered", id: message.id, attempt: message.attempt, answer: answer.action)
          end
        end
        say("ready")
      end

      def store
        confirming? ? @keys : OnlyFirstTime.new(@keys)
      end

      def confirming?
        @settings[:store] == "claim"
      end

      def handle(message)
        say("begun", id: message.id)
        perhaps_die
        sleep @settings[:stall]
        ActiveRecord::Base.transaction { work(message.id) }
        perhaps_die
        AMQP::Ack.accept
      end

      def work(id)
        ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('#{id}')")
        perhaps_die
        @keys.confirm(id) if confirming?
        perhaps_die
      end

      def perhaps_die
        return unless rand < @settings[:mortality]

        Process.kill(:KILL, Process.pid)
        sleep
      end

      def say(event, **facts)
        @lock.synchronize { @output.syswrite("#{JSON.generate(event: event, **facts)}\n") }
      end
    end
  end
end
