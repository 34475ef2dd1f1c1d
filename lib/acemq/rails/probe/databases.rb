# frozen_string_literal: true

require_relative "../../amqp/deadline"
require_relative "question"

module AceMQ
  module Rails
    class Probe
      # The databases of outboxes, asked all at once: together they take no longer than one may.
      #
      # @api private
      class Databases
        # What came of a question: a value, or what was raised.
        Answer = Struct.new(:value, :error) do
          def ok?
            error.nil?
          end

          # @return [String, nil] why there is no value
          def reason
            error&.message&.lines&.first.to_s.strip if error
          end
        end

        # @param patience [Numeric] seconds
        # @param fresh [Numeric] seconds for which an answer serves, at least
        def initialize(patience, fresh)
          @patience = patience
          @fresh = fresh
          @questions = {}
          @lock = Mutex.new
        end

        # @param what [Symbol] which question it is
        # @param outboxes [Enumerable<Operations::Outboxes::Named>]
        # @param former [Boolean] whether the answer before will do while the present one takes its time
        # @yieldparam outbox [Operations::Outboxes::Named]
        # @return [Hash{Operations::Outboxes::Named => Answer}]
        def ask(what, outboxes, former: false, &block)
          asked = outboxes.to_h { |outbox| [outbox, question(what, outbox).ask { block.call(outbox) }] }
          deadline = AMQP::Deadline.in(@patience)
          asked.transform_values { |question| answer(question, former, deadline) }
        end

        private

        def answer(question, former, deadline)
          Answer.new(former ? question.latest(deadline.left) : question.answer(deadline.left))
        rescue StandardError => e
          Answer.new(nil, e)
        end

        def question(what, outbox)
          @lock.synchronize { @questions[[what, outbox.name]] ||= Question.new(@patience, @fresh) }
        end
      end
    end
  end
end
