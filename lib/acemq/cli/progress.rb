# frozen_string_literal: true

require "json"
require_relative "../amqp/clock"
require_relative "duration"

module AceMQ
  module CLI
    # How far a long command has come: on a terminal one line that is written over, elsewhere a line every few seconds,
    # and for programs a line of JSON each time.
    class Progress
      EVERY = 5.0 # seconds

      # @param name [String] of the outbox
      # @param json [Boolean]
      def initialize(name, json: false)
        @name = name
        @json = json
        @said_at = AMQP::Clock.now
      end

      # @param step [Operations::Drain::Progress]
      def drained(step, last: false)
        return line(JSON.generate(outbox: @name, **step.to_h, done: last && step.done?)) if @json

        tell(drained_text(step), last: last)
      end

      # @param text [String]
      # @param last [Boolean] whether it stays
      def tell(text, last: false)
        return write_over(text, last) if $stdout.tty?
        return unless last || AMQP::Clock.now - @said_at >= EVERY

        @said_at = AMQP::Clock.now
        line(text)
      end

      private

      def drained_text(step)
        parts = [format("%s: %d published, %d left (%d %%)", @name, step.published, step.left, step.percent.floor),
                 format("%d/s", step.rate.round)]
        parts << "#{Duration.show(step.seconds_left)} to go" if step.left.positive? && step.seconds_left && !step.error
        parts << "waiting: #{step.error.message}" if step.error
        parts.join(", ")
      end

      def write_over(text, last)
        $stdout.print "\r\e[K#{text}#{"\n" if last}"
        $stdout.flush
      end

      def line(text)
        $stdout.puts text
        $stdout.flush
      end
    end
  end
end
