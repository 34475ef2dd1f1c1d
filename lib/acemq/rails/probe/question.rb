# frozen_string_literal: true

require_relative "../../amqp/clock"

module AceMQ
  module Rails
    class Probe
      # Something that is asked of a database, which may be slow, or frozen: asked in a thread of its own, one at a time,
      # and not waited for very long. A fresh answer serves whoever asks next; the longer it took, the longer it is fresh,
      # so that asking is never what the database mostly does.
      #
      # @api private
      class Question
        # There was no answer in time.
        class Unanswered < StandardError; end

        # How much longer an answer is good than it took.
        REST = 10

        # @param patience [Numeric] seconds
        # @param fresh [Numeric] seconds, at least
        def initialize(patience, fresh)
          @patience = patience
          @fresh = fresh
          @good_until = 0.0
          @lock = Mutex.new
        end

        # Has it asked, unless it is being asked, or was lately.
        #
        # @return [self]
        def ask(&question)
          @lock.synchronize { asked(question) }
          self
        end

        # @param seconds [Numeric] to wait for it
        # @return [Object] the block's of {#ask}
        # @raise [Unanswered, StandardError] what the block raised
        def answer(seconds = @patience)
          thread = @lock.synchronize { @thread }
          raise Unanswered, "no answer within #{@patience} s" unless thread.join(seconds)

          thread.value
        end

        # @param seconds [Numeric] to wait for it
        # @return [Object, nil] the block's of {#ask}, or, while the present one takes its time, the one before
        # @raise [StandardError] what the block raised
        def latest(seconds = @patience)
          answer(seconds)
        rescue Unanswered
          @last
        end

        private

        def asked(question)
          return @thread if @pid == Process.pid && (@thread.alive? || AMQP::Clock.now < @good_until)

          @pid = Process.pid # a forked child has inherited the answer, if there was one, and not the thread
          @thread = Thread.new { timed(question) }.tap { |thread| thread.report_on_exception = false }
        end

        def timed(question)
          began = AMQP::Clock.now
          @last = question.call
        ensure
          @good_until = AMQP::Clock.now + [@fresh, (AMQP::Clock.now - began) * REST].max
        end
      end
    end
  end
end
