# frozen_string_literal: true

require_relative "claiming_store"
require_relative "instrument"
require_relative "pending_store"
require_relative "redial"
require_relative "reporter"
require_relative "round"
require_relative "shutdown"
require_relative "states"
require_relative "surroundings"
require_relative "turn"
require_relative "worker"

module AceMQ
  module AMQP
    module Patterns
      # The parts of {OutboxRelay}.
      #
      # @api private
      module Relay
        # Everything of a relay that belongs to one process: its thread, its turn, what it owes the store, what it
        # has told. A forked child makes its own and leaves the parent's alone.
        class Engine
          # Seconds that close allows by default, the family's own for a connection.
          CLOSE_WITHIN = 20
          # The part of them that is kept for telling the store what is known, at most this many seconds.
          TO_SETTLE = 2.0
          # Seconds between two looks at a broker that has blocked us, at most.
          BLOCKED_POLL = 1.0
          # Seconds between two tries of a failing database, at least.
          STORE_POLL = 0.1

          PAUSED = "told to pause; resume goes on"

          # @param link [Link]
          # @param store [Object] the application's
          # @param options [Options]
          def initialize(link, store, options)
            @pid = Process.pid
            @link = link
            @store = (options.claims? ? ClaimingStore : PendingStore).new(store, options)
            @options = options
            @lock = Mutex.new
            @turn = Turn.new
            @states = States.new
            @redial = Redial.new
            @reporter = Reporter.new(options.on_error)
            @shutdown = Shutdown.new
            @paused = false
          end

          # @return [Boolean] whether this process made it
          def ours?
            @pid == Process.pid
          end

          # @return [State]
          def state
            @states.current
          end

          def running?
            @worker&.alive? ? true : false
          end

          def start
            @lock.synchronize do
              next if running?

              @states.enter(:idle)
              shutdown = @shutdown
              @worker = Worker.new { tick(shutdown) }.start
            end
          end

          def wake
            @worker&.wake
          end

          # Claims nothing more until {#resume}; the batch on its way ends by itself.
          def pause
            @paused = true
            show_pause unless @turn.busy?
            wake
          end

          def resume
            @paused = false
            @states.enter(:idle) if state.name == :paused
            wake
          end

          def paused?
            @paused
          end

          # @param ignore_backoff [Boolean]
          # @return [Integer] rows published
          def sweep(ignore_backoff:)
            result = @turn.take_for_sweep(method(:refuse_while_blocked)) do
              round(@shutdown, explicit: true, ignore_backoff: ignore_backoff).tap { show_pause if @paused }
            end
            @reporter.passed(result)
            raise result.first_error if result.first_error

            result.published
          end

          # @param timeout [Numeric, nil] seconds
          def close(timeout)
            timeout ||= CLOSE_WITHIN
            deadline = Clock.now + timeout
            worker, shutdown = stop
            wait_for_end(worker, shutdown, deadline, timeout) unless worker&.me? || @turn.mine?
            @states.enter(:closed)
          end

          private

          # The next start, or sweep, gets a fresh one.
          def stop
            @lock.synchronize do
              worker = @worker
              shutdown = @shutdown
              @shutdown = Shutdown.new
              worker&.stop
              shutdown.request
              [worker, shutdown]
            end
          end

          def wait_for_end(worker, shutdown, deadline, timeout)
            unless ended?(worker, deadline - [timeout * 0.3, TO_SETTLE].min)
              shutdown.cancel
              ended?(worker, deadline)
            end
            settle_kept
          end

          def ended?(worker, deadline)
            (worker.nil? || worker.join(deadline)) && @turn.wait_until_free(deadline)
          end

          # The last chance to mark what a failing database would not let us mark.
          def settle_kept
            @turn.take { @store.settle_kept } if @turn.wait_until_free(Clock.now)
          rescue StandardError => e
            @reporter.report(Result.new.tap { |result| result.add_failure(:store, e) })
          end

          # @return [Worker::Pause] how long to leave things alone
          def tick(shutdown)
            return pause_of_a_paused_relay if @paused

            Surroundings.wrap do
              result = @turn.take { round(shutdown, explicit: false, ignore_backoff: false) }
              @reporter.report(result)
              pause_after(result)
            end
          rescue SystemExit
            raise
          rescue Shutdown::Interrupted
            idle
          rescue Exception => e # rubocop:disable Lint/RescueException -- nothing but a kill ends this thread
            @options.on_error.call(Failure.new(error: e, scope: :store, permanent: false))
            idle
          end

          def round(shutdown, explicit:, ignore_backoff:)
            Instrument.round do
              Round.new(link: @link, store: @store, options: @options, states: @states, shutdown: shutdown,
                        reporter: @reporter, explicit: explicit, ignore_backoff: ignore_backoff).call
            end
          end

          def pause_of_a_paused_relay
            show_pause
            idle
          end

          def show_pause
            @states.enter(:paused, PAUSED) unless state.name == :closed
          end

          def pause_after(result)
            @redial.reset if result.reached? && !result.failed(:connection)
            return Worker::Pause.new([@options.interval, STORE_POLL].max, true) if result.failed(:store)
            return pause_without_broker(result) if result.failed(:connection)

            result.more? ? Worker::Pause.new(0, false) : idle
          end

          # Not cut short by a wake-up: every commit may bring one, and a broker that is down would be dialled as often.
          def pause_without_broker(result)
            seconds = result.blocked? ? [@options.interval, BLOCKED_POLL].min : @redial.pause
            Worker::Pause.new(seconds, false)
          end

          def idle
            Worker::Pause.new(@options.interval, true)
          end

          # The thread may sit out an alarm for hours with its batch on the way.
          def refuse_while_blocked
            return unless @states.blocked?

            raise PublishingPausedError, "the broker has blocked publishing (#{state.reason}): nothing was published"
          end
        end
      end
    end
  end
end
