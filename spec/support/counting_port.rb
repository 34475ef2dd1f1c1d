# frozen_string_literal: true

require "socket"

module AceMQ
  module SpecSupport
    # A port that counts who comes, and serves nobody.
    class CountingPort
      attr_reader :port, :visits

      def initialize
        @server = TCPServer.new("127.0.0.1", 0)
        @port = @server.addr[1]
        @visits = 0
        @thread = Thread.new { loop { @server.accept.close.then { @visits += 1 } } }
        @thread.report_on_exception = false
      end

      def close
        @thread.kill
        @server.close
      end
    end
  end
end
