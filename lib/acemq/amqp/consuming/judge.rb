# frozen_string_literal: true

require_relative "../ack"
require_relative "../errors"
require_relative "../settlement"
require_relative "error_text"

module AceMQ
  module AMQP
    module Consuming
      # Decides what becomes of a delivery. The texts are the same in every library of the family.
      #
      # @api private
      class Judge
        ACCEPTED = Settlement.new(Settlement::ACKED)

        # @param policy [RetryPolicy]
        def initialize(policy)
          @policy = policy
        end

        # @param answer [Object] what the handler returned
        # @return [Ack]
        def ack(answer)
          return answer if answer.is_a?(Ack)

          Ack.reject(FatalError.new("the handler returned #{answer.class} instead of an Ack; let it end with " \
                                    "Ack.accept, Ack.retry, Ack.reject or Ack.park"))
        end

        # @param answer [Ack]
        # @param envelope [Envelope]
        # @return [Settlement]
        def settlement(answer, envelope)
          case answer.action
          when Ack::ACCEPT then ACCEPTED
          when Ack::RETRY then after_failure(answer.error, envelope)
          when Ack::PARK then aside(Settlement::PARKED, "parked by the handler", answer.error)
          when Ack::IN_PROGRESS then Settlement.new(Settlement::IN_PROGRESS, delay: answer.delay)
          else aside(Settlement::REJECTED, "rejected by the handler", answer.error)
          end
        end

        # @param error [Exception] what the handler raised
        # @return [Ack]
        def answer_to(error)
          error.is_a?(FatalError) ? Ack.reject(error) : Ack.retry(error)
        end

        # A retry cannot change the bytes.
        #
        # @param error [Exception]
        # @return [Settlement]
        def undecodable(error)
          Settlement.new(Settlement::PARKED,
                         reason: ErrorText.cut("could not be decoded: #{ErrorText.message_of(error)}"))
        end

        private

        def after_failure(reason, envelope)
          return dead("retrying cannot help", reason) if reason.is_a?(FatalError)

          # Without jitter, because the delay names the queue to wait in.
          delay = @policy.next_delay(envelope.attempt, envelope.age, jitter: false)
          return Settlement.new(Settlement::RETRIED, delay: delay, reason: ErrorText.cut(ErrorText.readable(reason))) if delay
          return dead("gave up after #{@policy.max_attempts} attempts", reason) if envelope.attempt >= @policy.max_attempts

          dead("gave up on a message older than #{@policy.max_message_age} seconds", reason)
        end

        def dead(cause, reason)
          aside(Settlement::DEAD_LETTERED, cause, reason)
        end

        def aside(outcome, cause, reason)
          Settlement.new(outcome, reason: ErrorText.of(cause, reason))
        end
      end
    end
  end
end
