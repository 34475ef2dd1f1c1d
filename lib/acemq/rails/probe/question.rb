# frozen_string_literal: true

module AceMQ
  module Rails
    class Probe
      # Something that is asked of a database, which may be frozen: asked in a thread of its own, one at a time, and
      # given up after a while. A fresh answer serves whoever asks next.
      #
      # @api private
      class Question
        # There was no answer in time.
        class Unanswered < StandardError; end

        # @param patience [Numeric] seconds
        # @param fresh [Numeric] seconds
        def initialize(patience, fresh)
          @patience = patience
          @fresh = fresh
          @lock = Mutex.new
        end

        # @return [Object] the block's, now or lately
        # @raise [Unanswered, StandardError] what the block raised
        def answer(&question)
          thread = @lock.synchronize { asked(question) }
          raise Unanswered, "no answer within #{@patience} s" unless thread.join(@patience)

          thread.value
        end

        private

        def asked(question)
          return @thread if @pid == Process.pid && (@thread.alive? || clock - @asked_at < @fresh)

          @pid = Process.pid # a forked child has inherited the answer, if there was one, and not the thread
          @asked_at = clock
          @thread = Thread.new(&question).tap { |thread| thread.report_on_exception = false }
        end

        def clock
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
