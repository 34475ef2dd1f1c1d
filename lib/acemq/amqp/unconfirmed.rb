# frozen_string_literal: true

require_relative "errors"

module AceMQ
  module AMQP
    # The one error for a batch of which some messages failed.
    #
    # @api private
    module Unconfirmed
      class << self
        # @param outcomes [Array<Object>] one per message, in order; a failed one's is an exception
        # @return [PublishError, nil] nil when all were confirmed
        def error(outcomes)
          failures = outcomes.grep(Exception)
          return if failures.empty?

          text = text(failures, outcomes.size)
          return PublishingPausedError.new(text) if failures.all?(PublishingPausedError)

          PublishError.new(text, **answers(failures))
        end

        private

        # The family's libraries share this sentence.
        def text(failures, total)
          "#{failures.size} of #{total} messages were not confirmed; #{total - failures.size} were. " \
            "The first failure was: #{failures.first.message}"
        end

        def answers(failures)
          { unroutable: all?(failures, :unroutable?), nacked: all?(failures, :nacked?),
            permanent: all?(failures, :permanent?), unknown: failures.any? { |e| ask(e, :unknown?) },
            scope: ask(failures.first, :scope) || :record,
            exchange: ask(failures.first, :exchange), routing_key: ask(failures.first, :routing_key) }
        end

        def all?(failures, question)
          failures.all? { |error| ask(error, question) }
        end

        def ask(error, question)
          error.respond_to?(question) ? error.public_send(question) : nil
        end
      end
    end
  end
end
