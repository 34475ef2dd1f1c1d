# frozen_string_literal: true

require "bunny"
require "logger"
require "securerandom"
require "uri"
require_relative "../../support/proxy"
require_relative "../../support/servers"

module AceMQ
  module Chaos
    # The broker, the proxy before it, and the queues that everything must end up in, looked at with another client's
    # eyes.
    class Broker
      # A queue that takes no more than this many nacks the rest.
      FULL = 40
      NACKING = { "x-max-length" => FULL, "x-overflow" => "reject-publish" }.freeze
      LANES_OF_A_QUEUE = 3

      # @return [SpecSupport::Proxy] what relays connect through
      attr_reader :proxy

      def initialize
        @server = TestServers.rabbitmq
        @proxy = SpecSupport::Proxy.new(URI(@server.url).port)
        @prefix = "chaos-#{Process.pid}-#{SecureRandom.hex(2)}"
        @episode = 0
      end

      # @return [String] of the proxy
      def url
        @proxy.url(@server.url)
      end

      # @return [Boolean] whether it may be stopped
      def ours?
        @server.ours?
      end

      # New exchanges and queues, the old ones gone.
      #
      # @param quorum [Boolean] quorum queues
      # @param missing [Boolean] whether the late lane lacks its exchange, and not only its binding
      # @param nacking [Boolean] whether the full lane's queue can be full
      # @return [Hash{Array(String, String) => Symbol}] kinds of lanes, see {Ledger}
      def prepare(quorum:, missing:, nacking: true)
        clear
        @episode += 1
        @missing = missing
        @bindings = []
        @queues = [declare("full", false, nacking ? NACKING : {}), declare("a", quorum), declare("b", quorum)]
        bind(@queues.first, exchange, "full")
        lanes = @queues.drop(1).flat_map { |queue| bind_lanes(queue) }.to_h { |lane| [lane, :good] }
        lanes.merge([late_exchange, "late"] => :late, [exchange, "full"] => nacking ? :full : :good)
      end

      # The late lane's queue is bound at last.
      def bind_late
        bind(@queues.last, late_exchange, "late")
      end

      # Takes everything out of every queue.
      #
      # @yieldparam ids [Array<String>] message ids, in the order of their queue
      def drain
        @queues.each { |queue| yield take_all(queue) }
      end

      def clear
        return unless @queues

        channel do |ch|
          @queues.each { |queue| ch.queue_delete(queue) }
          [exchange, "#{exchange}-later"].each { |name| ch.exchange_delete(name) }
        end
      end

      def stop
        forget_session
        @server.stop
      end

      def kill
        forget_session
        @server.kill
      end

      # A broker that was killed may have forgotten what it was told last, so it is told again, as an application does
      # that starts.
      def start
        @server.start
        @bindings.each { |binding| bind_now(*binding) }
      end

      def pause
        @server.pause
      end

      def resume
        @server.resume
      end

      # @param raised [Boolean] the memory alarm
      def alarm(raised)
        @server.alarm!(raised)
      end

      def close_connections
        forget_session
        @server.ctl("close_all_connections", "by an operator")
      end

      def close
        clear
        forget_session
        @proxy.close
      end

      private

      def exchange
        "#{@prefix}-#{@episode}"
      end

      def late_exchange
        @missing ? "#{exchange}-later" : exchange
      end

      def declare(name, quorum, arguments = {})
        arguments = arguments.merge("x-queue-type" => "quorum") if quorum
        channel { |ch| ch.queue("#{exchange}-#{name}", durable: true, arguments: arguments).name }
      end

      def bind_lanes(queue)
        Array.new(LANES_OF_A_QUEUE) do |i|
          key = "#{queue.split("-").last}.#{i}"
          bind(queue, exchange, key)
          [exchange, key]
        end
      end

      def bind(queue, exchange, key)
        @bindings << [queue, exchange, key]
        bind_now(queue, exchange, key)
      end

      def bind_now(queue, exchange, key)
        channel do |ch|
          ch.direct(exchange, durable: true)
          ch.queue_bind(queue, exchange, routing_key: key)
        end
      end

      # One by one: a quorum queue may hand what a cancelled consumer left to the next one out of order.
      def take_all(queue)
        channel do |ch|
          ids = []
          loop do
            _, properties, body = ch.basic_get(queue, manual_ack: false)
            break ids if body.nil?

            ids << properties[:message_id]
          end
        end
      end

      def channel
        ch = session.create_channel
        yield ch
      ensure
        ch.close if ch&.open?
      end

      def session
        @session = nil unless @session&.open?
        @session ||= Bunny.new(@server.url, automatically_recover: false, logger: quiet).start
      end

      def forget_session
        @session&.close
      rescue Bunny::Exception, SystemCallError
        nil # the broker was faster
      ensure
        @session = nil
      end

      def quiet
        @quiet ||= Logger.new(File::NULL)
      end
    end
  end
end
