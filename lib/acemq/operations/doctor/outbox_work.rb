# frozen_string_literal: true

require_relative "finding"
require_relative "../status"

module AceMQ
  module Operations
    class Doctor
      # What the rows say about the work: whether it goes on, what stands still, what has piled up.
      class OutboxWork
        # Seconds after which a row that waits is a sign.
        OLD = 60
        # Destinations that are looked at.
        MOST = 1_000
        # Seconds after which published rows look forgotten.
        FORGOTTEN = 30 * 86_400

        # @return [Array<AMQP::Patterns::OutboxDestination>] none before {#examine}
        attr_reader :destinations

        # @param outbox [Outboxes::Named]
        def initialize(outbox)
          @outbox = outbox
          @store = outbox.store
          @destinations = []
        end

        # @return [Array<Finding>]
        def examine
          found = @store.destinations(MOST + 1)
          @destinations = found.first(MOST)
          status = Status.new(@outbox)
          [backlog(status), *held(status), cut(found), retired(status), kept].compact
        end

        private

        def subject
          "outbox #{@outbox.name}"
        end

        def backlog(status)
          text = "#{status.pending} rows pending"
          return Finding.ok(subject, text) if status.oldest.to_f < OLD
          return nobody(status) if status.leases.empty? && status.rate.zero? && status.held.empty?

          Finding.warning(subject, "#{text}, the oldest written #{status.oldest.round} s ago",
                          "acemq status --watch: it shrinks, or one of the lines below says why not")
        end

        def nobody(status)
          Finding.error(subject, "#{status.pending} rows pending, the oldest written #{status.oldest.round} s ago, and nothing is being " \
                                 "claimed: no relay runs, or those that run are paused or have no broker",
                        "start one where none runs (acemq relay); where one does, its log says what it waits for")
        end

        def held(status)
          refused = @destinations.select { |one| one.pending.positive? && one.error }
          refused.map { |one| destination(one, held: status.held.key?([one.exchange, one.routing_key])) }
        end

        # What has failed before, and is not in backoff, may have been mended since.
        def destination(one, held:)
          Finding.new(subject: "destination #{one.exchange}/#{one.routing_key}", verdict: held ? :error : :warning,
                      text: "#{held ? "takes no messages" : "has failed"}, #{one.pending} rows wait: #{one.error}",
                      remedy: "bind a queue to it, or give the relay the permission, as the reason says; it goes on by itself then")
        end

        def cut(found)
          return if found.size <= MOST

          Finding.warning(subject, "rows are addressed to more than #{MOST} destinations: looked at were those that wait, and some others",
                          "mend these and ask again; acemq purge forgets destinations whose rows are all published")
        end

        def retired(status)
          return if status.retired.zero?

          Finding.error(subject, "#{status.retired} rows are retired and will not be tried again",
                        "mend what last_error says (acemq retry --all --dry-run lists them), then acemq retry --all")
        end

        def kept
          old = @store.purgeable_count(FORGOTTEN)
          return if old.zero?

          Finding.warning(subject, "#{old} rows were published more than 30 days ago", "acemq purge --older-than 30d, daily")
        end
      end
    end
  end
end
