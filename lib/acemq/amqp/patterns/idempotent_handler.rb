# frozen_string_literal: true

require_relative "claim"
require_relative "claim_renewer"
require_relative "idempotency_report"
require_relative "../log"

module AceMQ
  module AMQP
    module Patterns
      # A handler that does the work of one key once: asks the store, runs, confirms or forgets.
      #
      # @api private
      class IdempotentHandler
        ANSWERS = [Claim::CLAIMED, Claim::DUPLICATE, Claim::IN_PROGRESS].freeze

        NO_KEY = "the message's idempotency key is empty, and what cannot be told apart cannot be handled once"
        ONLY_FIRST_TIME = "%<store>s answers first_time? but not claim: it cannot tell work in progress from work " \
                          "that is done, so a message whose handler dies is lost if it comes back while the claim " \
                          "still stands. Give it claim(key), answering :claimed, :duplicate or :in_progress"

        class << self
          # @param store [#first_time?, #claim]
          # @param key [#call, nil]
          # @param renew_for [Numeric, nil]
          # @param observer [#count, nil]
          # @raise [ArgumentError] when one of them cannot do what the wrapper needs
          def check!(store, key, renew_for, observer)
            check_store!(store)
            unless key.nil? || key.respond_to?(:call)
              raise ArgumentError, "key: must answer call(message) and return the key, not be #{key.inspect}"
            end
            unless observer.nil? || observer.respond_to?(:count)
              raise ArgumentError, "telemetry: must answer count(metric, delta, **labels), not be #{observer.inspect}"
            end

            check_renewal!(store, renew_for) unless renew_for.nil?
          end

          # Said when the wrapper is built, because nothing at run time shows that the window exists.
          def warn_about(store)
            Log.warn(format(ONLY_FIRST_TIME, store: store.class)) unless store.respond_to?(:claim)
          end

          private

          def check_store!(store)
            return if store.respond_to?(:first_time?) || store.respond_to?(:claim)

            raise ArgumentError, "#{store.class} is no idempotency store: it does not answer first_time?(key) " \
                                 "(nor claim(key), which is better)"
          end

          def check_renewal!(store, renew_for)
            unless renew_for.is_a?(Numeric) && renew_for.positive?
              raise ArgumentError, "renew_for: must be seconds above 0, not #{renew_for.inspect}"
            end
            return if store.respond_to?(:renewal) && store.respond_to?(:claim_timeout)

            raise ArgumentError, "#{store.class} cannot renew a claim: it does not answer renewal(key) and claim_timeout"
          end
        end

        # @param store [Object] checked by {.check!}
        # @param handler [#call]
        # @param key [#call, nil]
        # @param come_back [Ack] the answer while somebody else is at it
        # @param renew_for [Numeric, nil] seconds
        # @param report [IdempotencyReport]
        def initialize(store, handler, key:, come_back:, renew_for:, report:)
          @store = store
          @handler = handler
          @key = key
          @come_back = come_back
          @renew_for = renew_for
          @report = report
        end

        # @param message [Message]
        # @return [Ack] the handler's own answer when it ran
        def call(message)
          key = key_of(message)
          return Ack.reject(FatalError.new(NO_KEY)) if key.empty?

          refusal(key) || run(key, message)
        end

        private

        def key_of(message)
          (@key ? @key.call(message) : message.envelope.id).to_s
        end

        # @return [Ack, nil] nil when this delivery holds the claim
        def refusal(key)
          answer = ask(key)
          @report.tell(answer == Claim::CLAIMED ? claimed(key) : answer, key)
          case answer
          when Claim::CLAIMED then nil
          when Claim::DUPLICATE then Ack.accept
          else @come_back
          end
        rescue StandardError => e
          # The store is broken, not the message: carrying on would risk the duplicate it exists to prevent.
          Ack.retry(e)
        end

        def ask(key)
          return @store.first_time?(key) ? Claim::CLAIMED : Claim::DUPLICATE unless @store.respond_to?(:claim)

          answer = @store.claim(key)
          return answer if ANSWERS.include?(answer)

          raise TypeError, "#{@store.class}#claim answered #{answer.inspect} instead of #{ANSWERS.inspect}"
        end

        def claimed(key)
          @store.respond_to?(:taken_over?) && @store.taken_over?(key) ? :taken_over : :first
        end

        # The claim is given back however the handler ends without having accepted: by its answer, an exception
        # of any kind, a throw, or the death of its thread.
        def run(key, message)
          accepted = false
          result = renewing(key) { @handler.call(message) }
          accepted = result.respond_to?(:accept?) && result.accept?
          # The work is done. When this fails the claim stays: taking it away would have the work done again.
          @store.confirm(key) if accepted && @store.respond_to?(:confirm)
          result
        rescue ClaimLostError
          @report.tell(:lost, key)
          raise
        ensure
          forget(key) unless accepted
        end

        def renewing(key, &handler)
          renewal = @store.renewal(key) if @renew_for
          return yield unless renewal

          ClaimRenewer.instance.during(renewal, lease: @store.claim_timeout, limit: @renew_for, &handler)
        end

        # Must not hide what the handler raised or answered.
        def forget(key)
          @store.forget(key) if @store.respond_to?(:forget)
        rescue StandardError => e
          Log.error("the idempotency claim on #{key.inspect} could not be given back and stands until it goes stale: " \
                    "#{e.message} (#{e.class})")
        end
      end

      class << self
        # Wraps a handler so that the work of one key is done once. Only a confirmed key is a duplicate and is
        # accepted without running the handler; while somebody else is at it the message comes back later.
        #
        # @param store [#claim, #first_time?, #confirm, #forget] `claim(key)` or `first_time?(key)` is required
        # @param options [Hash] the keywords of {.with_idempotency}
        # @yieldparam message [Message]
        # @yieldreturn [Ack]
        # @return [Proc] a lambda of one argument, the message
        # @raise [ArgumentError] without a block, or for a store or keyword that cannot do its part
        def idempotent(store, **options, &handler)
          raise ArgumentError, "idempotent needs a block: the handler that is to run once" unless handler

          with_idempotency(store, **options).call(handler)
        end

        # {.idempotent} as middleware.
        #
        # @param store (see .idempotent)
        # @param key [#call, nil] takes the message, returns the key; the message's id when nil. An empty key is
        #   rejected with a {FatalError}
        # @param in_progress_delay [Numeric] seconds until a message that is being handled elsewhere comes back
        # @param renew_for [Numeric, nil] seconds for which the claim is renewed at most while the handler runs; nil
        #   for never. The store must answer `renewal(key)` and `claim_timeout`. Leave it off where the handler confirms
        #   in its own transaction on MariaDB 11.6 or later, or under REPEATABLE READ on PostgreSQL: the row would have
        #   changed behind its back, and the database would roll the work back
        # @param telemetry [#count, nil] an observer that is told {HitRate::METRIC} with the label `outcome`
        # @return [Proc] takes a handler, returns the wrapped one
        # @raise [ArgumentError] for a store or keyword that cannot do its part
        def with_idempotency(store, key: nil, in_progress_delay: Ack::DEFAULT_IN_PROGRESS_DELAY, renew_for: nil, telemetry: nil)
          IdempotentHandler.check!(store, key, renew_for, telemetry)
          options = { key: key, come_back: Ack.in_progress(in_progress_delay), renew_for: renew_for,
                      report: IdempotencyReport.new(store, telemetry) }
          IdempotentHandler.warn_about(store)
          ->(inner) { IdempotentHandler.new(store, inner, **options).method(:call).to_proc }
        end
      end
    end
  end
end
