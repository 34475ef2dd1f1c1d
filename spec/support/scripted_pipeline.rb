# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # A transport with the native one's `connect`, `submit` and tickets, whose broker is a script.
    class ScriptedPipeline
      attr_reader :submitted, :options, :dials, :tickets
      # @return [String, nil]
      attr_accessor :blocked_reason
      # @return [Exception, nil] what a dial raises
      attr_accessor :down
      # @return [Boolean] whether tickets stay unfinished until they are cancelled or answered
      attr_accessor :stalled

      def initialize
        @submitted = []
        @options = []
        @tickets = []
        @dials = 0
        @verdicts = {}
      end

      # @param id [String] of a message
      # @param outcomes [Array<Exception, nil>] in turn, the last one for ever
      def verdict(id, *outcomes)
        @verdicts[id] = outcomes
      end

      def connect
        @dials += 1
        raise down if down

        self
      end

      def publish(**) = raise(NotImplementedError, "a relay submits")

      def submit(messages, **options)
        raise down if down

        @submitted << messages.map { |message| message[:message_id] }
        @options << options
        @tickets << ScriptedTicket.new(self, messages, stalled)
        @tickets.last
      end

      def messages_submitted = submitted.flatten

      def outcome(id)
        outcomes = @verdicts[id]
        return unless outcomes

        outcomes.size > 1 ? outcomes.shift : outcomes.first
      end

      class ScriptedTicket
        attr_reader :cancelled, :waits, :deadlines

        def initialize(transport, messages, stalled)
          @transport = transport
          @messages = messages
          @stalled = stalled
          @waits = 0
          @deadlines = []
          @lock = Mutex.new
          @signal = ConditionVariable.new
        end

        def answer!
          @lock.synchronize do
            @stalled = false
            @signal.broadcast
          end
        end

        def send_by(seconds)
          @deadlines << seconds
        end

        def cancel
          @lock.synchronize do
            @cancelled = true
            @signal.broadcast
          end
        end

        def wait(seconds)
          @waits += 1
          @lock.synchronize do
            @signal.wait(@lock, seconds) if @stalled && !@cancelled
            return if @stalled && !@cancelled

            @messages.map { |message| outcome(message) }
          end
        end

        private

        def outcome(message)
          known = @transport.outcome(message[:message_id])
          return known if known || !@stalled

          AceMQ::AMQP::ConfirmTimeout.new("cancelled before it was confirmed")
        end
      end
    end
  end
end
