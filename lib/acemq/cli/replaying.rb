# frozen_string_literal: true

require "json"
require_relative "exit_code"
require_relative "progress"
require_relative "usage"

module AceMQ
  module CLI
    # `acemq replay`: messages of one queue back to where they are handled.
    class Replaying
      # @param queue [String]
      # @param options [Hash] of the command
      # @param deadline [Float] seconds, 0 for none
      def initialize(queue, options, deadline)
        @queue = queue
        @options = options
        @deadline = deadline
        @progress = Progress.new(queue)
      end

      # @return [Integer] exit code
      # @raise [AMQP::ConfigurationError] when there is no such queue
      # @raise [Thor::Error] for what cannot be replayed
      def run
        connection = AceMQ::Rails.connection
        replay = Usage.check { AMQP::Patterns::Replay.new(connection, **arguments) }
        raise AMQP::ConfigurationError, "there is no queue #{@queue}" unless connection.queue_exists?(@queue)

        show(replay.run)
      end

      private

      def arguments
        exchange, routing_key = destination
        { from: @queue, exchange: exchange, routing_key: routing_key, limit: @options[:limit], deadline: @deadline,
          restart: !@options[:keep_attempts], filter: method(:wanted?), dry_run: @options[:dry_run] || false,
          progress: method(:tell) }
      end

      def destination
        return ["", nil] unless @options[:to]

        @options[:to].include?("/") ? @options[:to].split("/", 2) : ["", @options[:to]]
      end

      def wanted?(message)
        envelope = message.envelope
        [[@options[:id], envelope.id == @options[:id]], [@options[:type], envelope.type == @options[:type]],
         [@options[:error], envelope.error.to_s.include?(@options[:error].to_s)]].all? { |given, met| given.nil? || met }
      end

      def tell(result)
        @progress.tell("#{@queue}: #{result.examined} of #{result.total} looked at, #{result.replayed} moved") unless @options[:json]
      end

      def show(result)
        if @options[:json]
          puts JSON.generate(result.to_h)
        else
          @progress.tell(result.to_s, last: true)
        end
        code(result)
      end

      def code(result)
        return ExitCode::UNFINISHED if result.ended == :deadline

        result.refused.zero? ? ExitCode::OK : ExitCode::FOUND
      end
    end
  end
end
