# frozen_string_literal: true

require_relative "accepted_keywords"
require_relative "clock"
require_relative "deadline"
require_relative "log"
require_relative "retry_ladder"
require_relative "settlement"
require_relative "telemetry"
require_relative "consuming/declared"
require_relative "consuming/flight"
require_relative "consuming/judge"
require_relative "consuming/options"
require_relative "consuming/original"
require_relative "consuming/settling"
require_relative "consuming/work"

module AceMQ
  module AMQP
    # A subscription and what becomes of its messages; made by {Connection#consume}.
    #
    # Handlers run on `concurrency` threads of the transport. A message that waits for a later attempt occupies none of
    # them, but it stays unacknowledged and counts against the prefetch.
    class Consumer
      # Seconds at most for the broker to say that it delivers no more.
      STOP_TIMEOUT = 5.0

      # Seconds after which a broker hands out again what is not acknowledged, unless it is set up otherwise
      # (`consumer_timeout`).
      ACKNOWLEDGED_WITHIN = 1800

      # @return [String]
      attr_reader :queue
      # @return [RetryPolicy]
      attr_reader :retry_policy
      # @return [Object]
      attr_reader :codec
      # @return [RetryLadder] the queues in which its messages wait
      attr_reader :ladder

      # @param connection [Connection]
      # @param options [Consuming::Options]
      # @param handler [#call] takes a {Message}, returns an {Ack}
      # @api private
      def initialize(connection, options, handler)
        @connection = connection
        @options = options
        @queue = options.queue
        @retry_policy = options.retry_policy
        @codec = options.codec
        @in_order = handler.respond_to?(:in_order?) && handler.in_order?
        @ladder = RetryLadder.for(queue, retry_policy, threshold: options.retry_threshold)
        @declared = Consuming::Declared.new(connection, ladder)
        @desk = Consuming::Desk.new(queue: queue, decoder: Codec.decoder(codec), handler: handler,
                                    interceptors: connection.interceptors, judge: Consuming::Judge.new(retry_policy))
        @settling = Consuming::Settling.new(connection, policy: retry_policy, threshold: options.retry_threshold,
                                                        ladder: ladder, declared: @declared)
        @flight = Consuming::Flight.new
        @pid = Process.pid
        @released = false
      end

      # @return [Boolean] whether the broker has it as a consumer now; false while it is subscribing again, and in a
      #   forked child
      def running?
        ours? && !@subscription.nil? && !@released && (@subscription.open? ? true : false)
      end

      # @return [Integer] handlers that run now
      def in_flight
        ours? ? @flight.count : 0
      end

      # @return [Integer] messages held for a later attempt
      def waiting
        ours? ? @settling.waiting : 0
      end

      # @return [String, nil] why it is not running, where the transport says
      def trouble
        return if running?

        state, reason = @subscription.state if @subscription.respond_to?(:state)
        reason || state&.to_s
      end

      # Handles one delivery on this thread, and waits until it is settled or a first try to place its copy has failed.
      # For specs; messages of the subscription wait elsewhere.
      #
      # @param delivery [Delivery]
      # @return [Settlement] what was decided
      def handle(delivery)
        done = Thread::Queue.new
        settlement = take(Consuming::Original.new(delivery, Consuming::Work.envelope(delivery), done: done))
        done.pop
        settlement
      end

      # Stops, waits for its handlers, and gives back what is not settled then. Not from one of its own handlers, for
      # whose end it would wait. Whether all of them have ended is told by {#in_flight}. Interrupted while it waits, it
      # can be called again, and {Connection#close} waits too.
      #
      # @param timeout [Numeric] seconds
      # @return [nil]
      # @raise [ArgumentError] for a timeout that is none; nothing has been stopped then
      def cancel(timeout: Connection::DRAIN_TIMEOUT)
        deadline = Deadline.in(timeout)
        stop(deadline.left)
        drain(deadline)
        release(deadline.left)
        nil
      ensure
        @connection.forget(self) if @released
      end

      # @return [self]
      # @raise [TransportError] when the queue does not exist
      # @api private
      def start
        warn_about_long_waits
        warn_about_idle_threads
        @declared.declare
        order = @in_order ? { in_order: true } : {}
        @subscription = @connection.subscribe(queue, **@options.subscription, **order) { |delivery| receive(delivery) }
        self
      end

      # No handler is started from now on, and no message waits any more.
      #
      # @param timeout [Numeric] seconds for the broker to answer
      # @api private
      def stop(timeout)
        return unless ours?

        @settling.drain
        AcceptedKeywords.call(@subscription, :stop, timeout: [timeout, STOP_TIMEOUT].min) if @subscription
      end

      # @param deadline [Deadline]
      # @return [Boolean] whether all handlers have ended by then
      # @api private
      def drain(deadline)
        return true unless ours?

        @flight.wait_until_landed(deadline).tap { @settling.wait_until_drained(deadline) }
      end

      # What is not settled goes back with the channel; what handlers answer later is not settled.
      #
      # @param timeout [Numeric] seconds
      # @api private
      def release(timeout)
        return unless ours?

        @released = true
        @settling.release
        AcceptedKeywords.call(@subscription, :close, timeout: timeout) if @subscription
      end

      # @return [Boolean] whether this process has started it
      # @api private
      def ours?
        @pid == Process.pid
      end

      # @return [String]
      def inspect
        "#<#{self.class} queue=#{queue.inspect} running=#{running?} in_flight=#{in_flight}>"
      end

      private

      # Such a message would be handed out again before its time, with the same attempt, and never come to an end.
      def warn_about_long_waits
        threshold = @options.retry_threshold
        longest = retry_policy.delays.reject { |delay| RetryLadder.waits_in_broker?(delay, threshold) }.max
        return unless longest && longest >= ACKNOWLEDGED_WITHIN

        Log.warn("retries of #{queue} wait up to #{longest} s in the consumer, where a broker takes back what is not " \
                 "acknowledged within #{ACKNOWLEDGED_WITHIN} s (consumer_timeout); give a retry_threshold below that")
      end

      def warn_about_idle_threads
        handed = @options.prefetch
        threads = @options.concurrency
        return if handed.zero? || threads <= handed

        Log.warn("the consumer of #{queue} has #{threads} threads and is handed #{handed} messages ahead (prefetch): " \
                 "#{threads - handed} of them will never have anything to do")
      end

      def receive(delivery)
        take(Consuming::Original.new(delivery, Consuming::Work.envelope(delivery)))
      rescue StandardError => e
        Log.error("a message of #{queue} is left to the broker: #{e.class}: #{e.message}")
      end

      def take(original)
        finished = false
        settlement = flying { decide(original).tap { |decided| @settling.settle(original, decided) } }
        finished = true
        settlement
      rescue *Consuming::Work::FATAL => e
        finished = true
        cut_off(original)
        end_process(e)
      ensure
        # Neither returned nor raised: the handler's thread was killed, or it has thrown past us.
        cut_off(original) unless finished
      end

      def flying
        show_in_flight(@flight.enter)
        yield
      ensure
        show_in_flight(@flight.leave)
      end

      def show_in_flight(count)
        meter.gauge(Telemetry::IN_FLIGHT, count, queue: queue) if meter.on?
      end

      def decide(original)
        started = Clock.now
        meter.observe(Telemetry::CONSUME_ATTEMPTS, original.envelope.attempt, queue: queue) if meter.on?
        Consuming::Work.new(@desk, original) do |settlement|
          original.decided!
          record(settlement, Clock.now - started) if meter.on?
        end.settlement
      end

      def record(settlement, seconds)
        meter.count(Telemetry::CONSUME_TOTAL, queue: queue, outcome: settlement.outcome)
        meter.observe(Telemetry::CONSUME_DURATION, seconds, queue: queue, outcome: settlement.outcome)
        if settlement.retried?
          meter.count(Telemetry::RETRIED_TOTAL, queue: queue, outcome: settlement.outcome)
        elsif settlement.dead_letters? || settlement.parked?
          outcome = settlement.parked? ? Settlement::PARKED : Settlement::DEAD_LETTERED
          meter.count(Telemetry::DEAD_LETTERED_TOTAL, queue: queue, outcome: outcome)
        end
      end

      def cut_off(original)
        original.give_back
        meter.count(Telemetry::CONSUME_TOTAL, queue: queue, outcome: Settlement::REQUEUED) unless original.decided?
      end

      # An exit or a signal is meant for the process, whichever thread it was raised on.
      def end_process(error)
        raise error if Thread.current == Thread.main

        Log.error("the handler of #{queue} raised #{error.class}: its message goes back, and the process is told")
        Thread.main.raise(error)
      end

      def meter
        @connection.meter
      end
    end
  end
end
