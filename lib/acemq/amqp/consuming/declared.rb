# frozen_string_literal: true

require_relative "../errors"
require_relative "../log"

module AceMQ
  module AMQP
    module Consuming
      # What a consumer needs around its queue, declared where the broker lets it: queues that somebody declared
      # otherwise are used as they are, as long as no message can be lost in them.
      #
      # @api private
      class Declared
        # @param connection [Connection]
        # @param ladder [RetryLadder]
        def initialize(connection, ladder)
          @connection = connection
          @ladder = ladder
          @unusable = []
        end

        # @return [self]
        # @raise [TransportError] when the broker cannot be asked, or a queue is missing and may not be declared
        def declare
          declare_rungs
          declare_set_aside
          self
        end

        # @param rung [RetryLadder::Rung]
        # @return [Boolean] whether messages come back from it
        def usable?(rung)
          !@unusable.include?(rung.queue)
        end

        # Puts a queue back that has gone.
        #
        # @param queue [String]
        # @return [Boolean] whether it is one of ours
        def restore(queue)
          rung = @ladder.rungs.find { |candidate| candidate.queue == queue }
          return restore_rung(rung) if rung
          return false unless @ladder.set_aside.include?(queue)

          @ladder.declare_dead_letter_exchange(@connection)
          @ladder.declare_set_aside(@connection, queue)
          true
        end

        private

        def restore_rung(rung)
          @ladder.declare_way_back(@connection)
          @ladder.declare_rung(@connection, rung)
          true
        end

        def declare_rungs
          return if @ladder.empty?

          # A queue that expires into an exchange which does not route back loses what waits in it.
          back = accepted?("retries wait in the consumer") { @ladder.declare_way_back(@connection) }
          @ladder.rungs.each do |rung|
            as_we_declare = back && accepted?("retries of #{rung.delay} s wait in the consumer") do
              @ladder.declare_rung(@connection, rung)
            end
            @unusable |= [rung.queue] unless as_we_declare
          end
        end

        def declare_set_aside
          accepted?("it is used as it is") { @ladder.declare_dead_letter_exchange(@connection) }
          @ladder.set_aside.each do |queue|
            accepted?("it is used as it is", needed: queue) { @ladder.declare_set_aside(@connection, queue) }
          end
        end

        # A connection that was lost and is back looks like a refusal; a second refusal is one.
        #
        # @param needed [String] a queue without which nothing goes
        def accepted?(consequence, needed: @ladder.source, again: true, &declaration)
          declaration.call
          true
        rescue TransportError => e
          raise unless there?(needed)
          return accepted?(consequence, needed: needed, again: false, &declaration) if again

          Log.warn("#{e.message}; #{consequence}")
          false
        end

        # Asking tells a refusal from a broker that is not there.
        def there?(queue)
          @connection.queue_exists?(queue)
        rescue TransportError
          false
        end
      end
    end
  end
end
