# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # One run's end, from the wish to stop to the end of patience.
        class Shutdown
          # Ends a dial of the relay's own thread, which has nothing in hand yet.
          class Interrupted < Exception; end # rubocop:disable Lint/InheritException -- nothing on the way may rescue it

          def initialize
            @lock = Mutex.new
            @requested = false
            @cancelled = false
          end

          # No more batches; the one on its way may end by itself.
          def request
            @lock.synchronize do
              @requested = true
              @dialling&.raise(Interrupted)
            end
          end

          # No more patience: the batch on its way ends with what is known.
          def cancel
            @lock.synchronize do
              @cancelled = true
              @ticket&.cancel
            end
          end

          def requested?
            @requested
          end

          def cancelled?
            @cancelled
          end

          # @param ticket [#cancel] what {#cancel} has to reach while the block runs
          def watch(ticket)
            @lock.synchronize do
              @ticket = ticket
              ticket.cancel if @cancelled
            end
            yield
          ensure
            @lock.synchronize { @ticket = nil }
          end

          # Runs the block, unless or until the relay is to stop.
          #
          # @return [Object, nil] the block's, nil when interrupted
          def while_wanted
            @lock.synchronize do
              return if @requested

              @dialling = Thread.current
            end
            yield
          rescue Interrupted
            nil
          ensure
            @lock.synchronize { @dialling = nil }
          end
        end
      end
    end
  end
end
