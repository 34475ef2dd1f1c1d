# frozen_string_literal: true

require_relative "relay/engine"
require_relative "relay/gate"
require_relative "relay/link"
require_relative "relay/options"

module AceMQ
  module AMQP
    module Patterns
      # Publishes what an outbox holds and marks each row once the broker has confirmed it: at least once, and never
      # marked when it reached no queue.
      #
      # @example in a process of its own
      #   relay = AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store).start
      #   at_exit { relay.close }
      # @example in a spec: no thread, no waiting
      #   AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store).sweep
      class OutboxRelay
        # Seconds between two looks at an empty outbox.
        DEFAULT_INTERVAL = 1.0
        # Rows per claim.
        DEFAULT_BATCH = 100
        # Bytes of bodies that are on their way at once.
        DEFAULT_IN_FLIGHT_BYTES = 16 * 1024 * 1024
        # Seconds a message may stay without a confirm.
        DEFAULT_CONFIRM_TIMEOUT = 10

        # What a store has to answer.
        STORE_METHODS = %i[add pending mark_published].freeze

        # @param connection [Connection, #publish] a connection, or a transport; any object with the family's
        #   `publish` will do
        # @param store [#add, #pending, #mark_published] with `mark_failed` and `claim` used where it has them
        # @param interval [Numeric] seconds between two looks when there is nothing to do; a full batch is followed by
        #   the next at once
        # @param batch [Integer] rows per claim, up to 10,000
        # @param in_flight [Integer, nil] messages on their way at once. nil: the batch; 1 when `ordering` is
        #   `:strict`, so that not even a nack can reorder
        # @param in_flight_bytes [Integer] bytes of bodies on their way at once
        # @param confirm_timeout [Numeric] seconds a message may stay without a confirm; less than the store's lease
        # @param ordering [Symbol, nil] `:destination`: a failing record holds its exchange and routing key, and
        #   everything else flows on. `:strict`: it holds the whole table, and is retired at the store's ceiling.
        #   `:none`: no promise. nil: `:destination` where the store can claim, else `:strict`
        # @param mandatory [Boolean, #call, Enumerable<String>] whether a message must reach a queue to count as
        #   published. A callable takes exchange and routing key; a list names exchanges that need no consumer
        # @param on_retire [Symbol] `:continue` lets a destination flow on past a record that can never be sent,
        #   `:hold` stops it there
        # @param on_error [#call, nil] told of what the background thread meets, once per change of state. Takes the
        #   error, and `exchange:` and `routing_key:` if it declares them ("" where there is none). nil: the log
        # @raise [ArgumentError] naming the argument, and what it may be
        def initialize(connection, store, interval: DEFAULT_INTERVAL, batch: DEFAULT_BATCH, in_flight: nil,
                       in_flight_bytes: DEFAULT_IN_FLIGHT_BYTES, confirm_timeout: DEFAULT_CONFIRM_TIMEOUT,
                       ordering: nil, mandatory: true, on_retire: :continue, on_error: nil)
          check_store(store)
          @options = Relay::Options.new(store, interval: interval, batch: batch, in_flight: in_flight,
                                               in_flight_bytes: in_flight_bytes, confirm_timeout: confirm_timeout,
                                               ordering: ordering, mandatory: mandatory, on_retire: on_retire,
                                               on_error: on_error)
          @link = Relay::Link.new(connection)
          @store = store
          @lock = Mutex.new
        end

        # @return [Numeric] seconds
        def interval
          @options.interval
        end

        # @return [Integer] rows
        def batch
          @options.batch
        end

        # @param message [#exchange, #routing_key]
        # @return [Boolean] whether it must reach a queue to count as published
        # @raise [StandardError] what a callable of the application's raises
        def mandatory?(message)
          @options.mandatory.for?(message)
        end

        # Publishes from a thread until {#close}. Started already, it goes on; closed before, it starts again; a broker
        # that is down is dialled until it is there.
        #
        # While a Rails application is being initialised this only registers the relay: it starts once that is done, in
        # a process that serves (Puma, acemq-consumer, acemq relay; anywhere else by AceMQ::Rails.start_relays).
        #
        # @return [OutboxRelay] self
        def start
          return self if Relay::Gate.keeps?(self)

          engine.start
          @link.register(self)
          self
        end

        # Publishes one batch now. Tells the store everything it learned first, and then raises the first failure.
        #
        # @param ignore_backoff [Boolean] whether rows that wait after a failure are tried all the same; false for
        #   sweeps that nobody asked for, from a schedule, say
        # @return [Integer] rows published
        # @raise [StandardError] whatever the broker or the store raised
        # @raise [PublishingPausedError] while the broker has blocked publishing
        def sweep(ignore_backoff: true)
          engine.sweep(ignore_backoff: ignore_backoff)
        end

        # Has the thread claim nothing more, until {#resume}: rows wait, and the thread and its connection stay. The
        # batch on its way ends by itself. A {#sweep} is an order, and goes on publishing.
        #
        # @return [OutboxRelay] self
        def pause
          engine.pause
          self
        end

        # @return [OutboxRelay] self
        def resume
          engine.resume
          self
        end

        # @return [Boolean]
        def paused?
          @engine&.ours? ? @engine.paused? : false
        end

        # Stops claiming, and waits for the batch on its way; what is still unconfirmed when time is up is released.
        # May be called twice. Not for a signal handler (it waits): pass the wish to another thread there.
        # A relay inherited by a forked child is left alone.
        #
        # @param timeout [Numeric, nil] seconds for everything together; 20 when nil
        # @return [nil]
        def close(timeout: nil)
          return unless @engine&.ours?

          engine.close(timeout)
          @link.unregister(self)
          nil
        end

        # @return [Boolean] whether the thread is alive in this process
        def running?
          @engine&.ours? ? @engine.running? : false
        end

        # @return [Boolean] whether there is a live link to the broker; never dials
        def connected?
          @link.open?
        end

        # @return [#add, #pending] the outbox that it publishes
        attr_reader :store

        # Has the thread look at the outbox now instead of at the end of its interval.
        #
        # @return [nil]
        def wake
          @engine.wake if @engine&.ours?
          nil
        end

        # @return [Relay::State] `name` (`:idle`, `:publishing`, `:blocked`, `:down`, `:paused`, `:closed`), `since`
        #   (Time) and `reason` (String or nil)
        def state
          engine.state
        end

        # @return [String]
        def inspect
          "#<#{self.class.name} #{state.name} interval=#{interval} batch=#{batch} ordering=#{@options.ordering}>"
        end

        private

        def engine
          @lock.synchronize do
            @engine = Relay::Engine.new(@link, @store, @options) unless @engine&.ours?
            @engine
          end
        end

        def check_store(store)
          missing = STORE_METHODS.reject { |method| store.respond_to?(method) }
          return if missing.empty?

          raise ArgumentError, "#{store.class} is no outbox store: it does not answer #{missing.join(", ")}"
        end
      end
    end
  end
end
