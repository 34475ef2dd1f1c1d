# frozen_string_literal: true

require_relative "../accepted_keywords"
require_relative "../codec"
require_relative "../deadline"
require_relative "../envelope"
require_relative "../errors"
require_relative "../headers"
require_relative "../log"
require_relative "../message"
require_relative "../naming"
require_relative "../short_string"
require_relative "replay_copy"
require_relative "replay_result"

module AceMQ
  module AMQP
    module Patterns
      # Moves messages of one queue to where they are handled again, one at a time: each is acknowledged once the broker
      # has its copy in a queue, and what is left behind goes back to its place, or, where that is counted, to the end.
      #
      # @api private
      class Replay
        # Those that a name without suffix can be made of.
        SUFFIXES = [Naming::DEAD_LETTER_SUFFIX, Naming::PARKED_SUFFIX].freeze

        def initialize(connection, from:, exchange:, routing_key:, limit:, deadline:, restart:, filter:, dry_run:, progress:)
          @connection = connection
          @from = named(from, "from:")
          @exchange = ShortString.check!(exchange, "exchange")
          @routing_key = destination(routing_key)
          @limit = whole(limit)
          @deadline = seconds(deadline)
          @restart = restart ? true : false
          @filter = callable(filter, "the filter (where:)")
          @progress = callable(progress, "progress:")
          @result = ReplayResult.new(from: @from, exchange: @exchange, routing_key: @routing_key, dry_run: dry_run)
        end

        # @return [ReplayResult]
        # @raise [ReplayFailed]
        def run
          # What comes meanwhile, the same messages again perhaps, is for another time.
          @result.total = @connection.message_count(@from)
          end_by = @deadline && Deadline.in(@deadline)
          # Nothing is given back before the end: it would be the next to be pulled.
          @result.ended = @connection.inbox { |inbox| passed(inbox, end_by) }
          @result.freeze
        rescue TransportError => e
          @result.ended = :failed
          raise ReplayFailed.new(e, @result)
        end

        private

        def passed(inbox, end_by)
          @result.total.times do
            return :limit if @limit&.<=(@result.replayed)
            return :deadline if end_by&.passed?

            check_open
            delivery = next_delivery(inbox) or break
            consider(delivery)
            @progress&.call(@result)
          end
          :finished
        end

        # A connection dials again by itself, and what is held here would be among what it pulls then.
        def next_delivery(inbox)
          inbox.pull(@from).tap { |delivery| check_held(@kept || delivery) }
        end

        def check_held(delivery)
          return if delivery.nil? || delivery.alive?

          raise TransportError, "the channel was lost, with the link or because the broker waits for no acknowledgement that " \
                               "long (its consumer_timeout), and what was held here went back"
        end

        # Of what is pulled while it takes no copy, a quorum queue would only count that it came back.
        def check_open
          reason = @connection.blocked_reason
          raise TransportError, "the broker takes nothing at present (#{reason})" if reason
        end

        def consider(delivery)
          chosen = or_put_back(delivery) { matching?(delivery) }
          return remain(delivery) { chosen ? @result.replay : @result.skip } if @result.dry_run? || !chosen

          refusal = or_put_back(delivery) { move(delivery) }
          remain(delivery) { @result.refuse(refusal) } if refusal
        end

        def remain(delivery)
          put_back(delivery)
          yield
        end

        # What ends this run may end the next one too, and the one after, until the broker drops the message.
        def or_put_back(delivery)
          found = yield
          done = true
          found
        ensure
          put_back_after_all(delivery) unless done
        end

        def put_back_after_all(delivery)
          put_back(delivery) if delivery.alive? && @connection.blocked_reason.nil?
        rescue TransportError
          nil # what ended it is more to the point
        end

        # A quorum queue counts what goes back to it, and drops what did so more often than its delivery limit says (20
        # times, where nothing else is said, since RabbitMQ 4.0). So what has been counted is put back as a copy.
        def put_back(delivery)
          kept(delivery) unless counted?(delivery) && renewed?(delivery)
        end

        # The first one kept speaks for all: they came by one channel.
        def kept(delivery)
          @kept ||= delivery
        end

        def counted?(delivery)
          count = (delivery.headers || {})[Headers::DELIVERY_COUNT]
          count.is_a?(Integer) && count.positive?
        end

        def renewed?(delivery)
          check_held(delivery)
          ReplayCopy.renewed(delivery, envelope(delivery)).publish(@connection.transport, exchange: "", routing_key: @from)
          acknowledge(delivery)
          true
        rescue PublishError => e
          raise if e.scope == :connection || e.unknown?

          # A full queue: it is held for the time being.
          warn_once("#{@from} takes no copies of what it holds (#{e.message}), so that this goes back as it is: each time nearer " \
                    "to the queue's delivery limit, beyond which the broker drops it")
          false
        end

        def matching?(delivery)
          @filter.nil? || (@filter.call(message(delivery)) ? true : false)
        end

        # @return [PublishError, nil] what is to be said of one that cannot be carried: it must not keep the others
        def move(delivery)
          check_held(delivery)
          ReplayCopy.moved(delivery, from: @from, restart: @restart)
                    .publish(@connection.transport, exchange: @exchange, routing_key: @routing_key)
          @result.replay
          acknowledge(delivery)
          nil
        rescue PublishError => e
          e.scope == :record ? e : raise
        end

        def warn_once(text)
          Log.warn(text) unless @warned
          @warned = true
        end

        def acknowledge(delivery)
          return unless delivery.ack == false

          raise TransportError, "the link to the broker was lost before the last of them was acknowledged: there are two of it now"
        end

        def message(delivery)
          Message.new(payload: payload(delivery), envelope: envelope(delivery), routing_key: delivery.routing_key,
                      content_type: delivery.content_type, redelivered: delivery.redelivered, body: delivery.body,
                      reply_to: delivery.reply_to)
        end

        def envelope(delivery)
          Envelope.from_headers(delivery.headers, delivery.routing_key, message_id: delivery.message_id)
        end

        def payload(delivery)
          Codec.decode(@connection.codec, delivery.body, delivery.content_type)
        rescue StandardError
          nil # parked because nobody could read it, perhaps
        end

        def destination(routing_key)
          key = ShortString.check!(routing_key || source, "routing_key")
          raise ArgumentError, "routing_key: the name of the queue is empty" if @exchange.empty? && key.empty?
          return key unless @exchange.empty? && key == @from

          raise ArgumentError, "replaying #{@from} onto itself would go round in circles; give another routing_key:"
        end

        def source
          suffix = SUFFIXES.find { |candidate| @from.end_with?(candidate) && @from.size > candidate.size }
          return @from.delete_suffix(suffix) if suffix && @exchange.empty?

          where = @exchange.empty? ? "#{@from} does not end in #{SUFFIXES.join(" or ")}" : "exchange #{@exchange} needs one"
          raise ArgumentError, "give routing_key:, where the messages of #{@from} are to go (#{where})"
        end

        def named(queue, what)
          name = ShortString.check!(queue, what)
          name.empty? ? raise(ArgumentError, "#{what} the name of the queue is empty") : name
        end

        def whole(limit)
          unless limit.is_a?(Integer) && !limit.negative?
            raise ArgumentError, "limit: must be a number of messages, 0 for all, not #{limit.inspect}"
          end

          limit if limit.positive?
        end

        def seconds(deadline)
          unless deadline.is_a?(Numeric) && deadline.real? && !deadline.negative?
            raise ArgumentError, "deadline: must be seconds, 0 for no deadline, not #{deadline.inspect}"
          end

          deadline if deadline.positive?
        end

        def callable(object, what)
          return object if object.nil? || object.respond_to?(:call)

          raise ArgumentError, "#{what} must answer call, not be #{object.inspect}"
        end
      end

      class << self
        # Moves messages back to where they are handled, dead letters of a mended cause above all. Each is acknowledged
        # once its copy is in a queue; one that cannot be placed stays where it was. Ends after as many messages as there
        # were at the start.
        #
        # Copies carry `acemq-replayed-from` (the queue), `acemq-replayed-at` (milliseconds since 1970) and
        # `acemq-replay-count`.
        #
        # @param connection [Connection]
        # @param from [String] a queue
        # @param exchange [String] `""` is the default exchange
        # @param routing_key [String, nil] nil: the queue that a `.dlq` or `.parked` belongs to
        # @param limit [Integer] messages to move at most, 0 for no limit
        # @param deadline [Numeric] seconds after which no other message is begun, 0 for no deadline
        # @param restart [Boolean] whether they begin again at attempt 1 and without their error. Without it, a message
        #   that had used up its attempts has one more failure until it is back
        # @param where [#call, nil] which of them: takes the {Message} (its payload is nil where it cannot be decoded).
        #   All others are held until the end, and then given back to their places; what a quorum queue has counted before is
        #   put back at its end, as a copy
        # @param dry_run [Boolean] whether to count what would be moved, and move nothing
        # @param progress [#call, nil] takes the {ReplayResult} so far, after every message
        # @yieldparam message [Message] instead of `where`
        # @return [ReplayResult]
        # @raise [ArgumentError] also for a queue that would be moved onto itself
        # @raise [ReplayFailed] when the broker is lost or takes no copy; with what was done until then. A message whose
        #   acknowledgement was lost with the link is still there although its copy is in a queue, and so may be one whose
        #   copy nobody confirmed (`unknown?`)
        # @example those that failed for one reason
        #   Patterns.replay(connection, from: "orders.dlq") { |m| m.envelope.error.include?("Net::OpenTimeout") }
        def replay(connection, from:, exchange: "", routing_key: nil, limit: 0, deadline: 0, restart: true, where: nil,
                   dry_run: false, progress: nil, &filter)
          raise ArgumentError, "give either where: or a block" if where && filter

          Replay.new(connection, from: from, exchange: exchange, routing_key: routing_key, limit: limit, deadline: deadline,
                                 restart: restart, filter: where || filter, dry_run: dry_run, progress: progress).run
        end
      end
    end
  end
end
