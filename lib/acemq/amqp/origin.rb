# frozen_string_literal: true

require "socket"

module AceMQ
  module AMQP
    # Who sends: what a connection writes into the envelopes of its messages.
    #
    # @api private
    module Origin
      # @return [String] "acemq@" and the host's name
      def self.default
        "acemq@#{Socket.gethostname}"
      rescue SystemCallError, SocketError
        "acemq@unknown"
      end
    end
  end
end
