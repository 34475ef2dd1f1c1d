# frozen_string_literal: true

require_relative "deadline"
require_relative "log"
require_relative "consuming/baton"

module AceMQ
  module AMQP
    # A consumer of one queue: threads that take deliveries and hand them to a block. When the connection, the channel
    # or the queue is lost it subscribes again, until it is stopped. A forked child does not inherit it.
    class Subscription
      # Seconds that an idle thread waits before it looks how the subscription stands.
      LOOK = 1.0
      # Seconds for the broker to answer, unless a call says otherwise.
      ANSWER_TIMEOUT = 5.0

      # @return [String]
      attr_reader :queue, :tag
      # @return [Integer] threads
      attr_reader :concurrency

      # @param native [Native::Subscription]
      # @param queue [String]
      # @param tag [String]
      # @param concurrency [Integer]
      # @param in_order [Boolean] see {Transport#subscribe}
      # @yieldparam letter [Array] as the extension gives it
      # @api private
      def initialize(native, queue:, tag:, concurrency:, in_order: false, &handler)
        @native = native
        @queue = queue
        @tag = tag
        @concurrency = concurrency
        @baton = Consuming::Baton.new if in_order
        @handler = handler
        @standing = native.standing.first
        @mutex = Mutex.new
        @threads = []
        concurrency.times { |index| spawn_worker(index) }
      end

      # @return [Boolean] whether the broker has the consumer now
      def open?
        state.first == :consuming
      end

      # @return [Array(Symbol, String)] `:consuming`, `:waiting` (to subscribe again) or `:stopped`, and why not consuming
      def state
        @native.standing
      end

      # Takes the consumer off the queue. Nothing more is begun, what nobody has begun goes back to the queue, and what
      # was begun can still be settled.
      #
      # @param timeout [Numeric] seconds for the broker to answer
      # @return [nil]
      def stop(timeout: ANSWER_TIMEOUT)
        @native.stop([timeout, 0].max.to_f)
      end

      # Stops, has every settlement written, and closes the channel: what is not settled goes back to the queue.
      # Threads that are still at work are left to it.
      #
      # @param timeout [Numeric] seconds
      # @return [nil]
      def close(timeout: ANSWER_TIMEOUT)
        deadline = Deadline.in(timeout)
        stop(timeout: deadline.left)
        @native.close(deadline.left.to_f)
      end
      alias cancel close

      # @return [String]
      def inspect
        "#<#{self.class} queue=#{queue.inspect} tag=#{tag.inspect} #{state.compact.join(": ")}>"
      end

      private

      def spawn_worker(index)
        thread = Thread.new { work(index) }
        thread.name = "acemq-#{index}-#{queue}"
        @mutex.synchronize { @threads[index] = thread }
      end

      def work(index)
        loop do
          letter = @baton ? @baton.take { @native.pop(LOOK) } : @native.pop(LOOK)
          break if letter == false

          letter ? hand_over(letter) : report_change
        end
        ended = true
      ensure
        replace_worker(index) unless ended || @native.standing.first == :stopped
      end

      # A handler's Thread.exit, or a kill from elsewhere, must not leave the queue with a thread less.
      def replace_worker(index)
        spawn_worker(index)
      rescue ThreadError
        nil # the process is ending, and all its threads with it
      end

      def hand_over(letter)
        @handler.call(letter)
      rescue StandardError => e
        Log.error("a delivery from #{queue.inspect} was not settled: #{e.class}: #{e.message}")
      ensure
        @baton&.pass
      end

      def report_change
        standing, reason = state
        changed = @mutex.synchronize { standing != @standing && (@standing = standing) }
        return unless changed
        return Log.warn("consuming from #{queue.inspect} again") if standing == :consuming

        Log.warn("not consuming from #{queue.inspect}: #{reason}#{"; subscribing again" if standing == :waiting}")
      end
    end
  end
end
