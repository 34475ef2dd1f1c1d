# frozen_string_literal: true

require_relative "process_kind"

module AceMQ
  module Rails
    # Relays that were told to start while the application was still being initialised. They start once it is, in a
    # process that serves, and in each of its children that does; not where Rails was only loaded to do something else.
    module Relays
      @kept = []
      @started = {} # by process: a child has the parent's list, and not its threads
      @mutex = Mutex.new

      class << self
        # From here on, and until Rails says that it is initialised, relays are kept.
        #
        # @return [nil]
        # @api private
        def initialising
          @initialising = true
          nil
        end

        # Asked by a relay that is told to start.
        #
        # @param relay [AceMQ::AMQP::Patterns::OutboxRelay]
        # @return [Boolean] whether it is started later, or never in this process
        # @api private
        def keep?(relay)
          return starts(relay) unless initialising?

          say_why unless kept.any? || ProcessKind.serves?
          keep(relay)
          true
        end

        # @param relay [AceMQ::AMQP::Patterns::OutboxRelay] to be closed when the process ends
        # @return [AceMQ::AMQP::Patterns::OutboxRelay]
        # @api private
        def keep(relay)
          @mutex.synchronize { @kept |= [relay] }
          relay
        end

        # @return [Array<AceMQ::AMQP::Patterns::OutboxRelay>] those that were kept
        # @api private
        def kept
          @mutex.synchronize { @kept.dup }
        end

        # @return [Array<AceMQ::AMQP::Patterns::OutboxRelay>] those that run now
        # @api private
        def start
          @initialising = false
          kept.each(&:start)
        end

        # A worker that was told to leave them alone, or a child of the one that runs them, has none.
        #
        # @return [Array<AceMQ::AMQP::Patterns::OutboxRelay>] those that were started in this process
        # @api private
        def started
          kept & @mutex.synchronize { @started.fetch(Process.pid, []) }
        end

        # Also those on connections of their own, which nobody else closes when the process ends.
        #
        # @param deadline [AceMQ::AMQP::Deadline]
        # @return [nil]
        # @api private
        def close(deadline)
          kept.each { |relay| relay.close(timeout: deadline.left) }
          nil
        end

        # @param relays [Array<AceMQ::AMQP::Patterns::OutboxRelay>] that somebody else closes, or has closed
        # @return [nil]
        # @api private
        def release(relays)
          @mutex.synchronize { @kept -= relays }
          nil
        end

        # @return [nil]
        # @api private
        def clear
          @mutex.synchronize do
            @kept.clear
            @started.clear
          end
          @initialising = false
          nil
        end

        private

        # @return [false]
        def starts(relay)
          @mutex.synchronize { @started = { Process.pid => [relay, *@started[Process.pid]].uniq } if @kept.include?(relay) }
          false
        end

        def initialising?
          return false unless @initialising

          @initialising = !::Rails.application.initialized?
        end

        def say_why
          AceMQ::Rails.logger.info("acemq: the outbox relay does not start here: #{ProcessKind.name} serves nothing. It " \
                                   "does in Puma, acemq-consumer and acemq relay; anywhere else by AceMQ::Rails.start_relays")
        end
      end
    end
  end
end
