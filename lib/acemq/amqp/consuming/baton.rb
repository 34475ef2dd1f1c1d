# frozen_string_literal: true

module AceMQ
  module AMQP
    module Consuming
      # Held by the one thread of a subscription that takes the next delivery, and until that delivery has found its place
      # in order or is through. Otherwise a thread that took its delivery later may be the first at the handler.
      #
      # @api private
      class Baton
        KEY = :acemq_baton

        # The delivery that this thread handles is in its place; does nothing on any other thread.
        def self.pass
          Thread.current[KEY]&.pass
        end

        def initialize
          @mutex = Mutex.new
        end

        # @yieldreturn [Object] a delivery, or what the baton need not be held for
        # @return [Object] that
        def take
          @mutex.lock
          Thread.current[KEY] = self
          taken = yield
        ensure
          pass unless taken
        end

        # A handler may have passed it already.
        def pass
          @mutex.unlock if @mutex.owned?
        end
      end
    end
  end
end
