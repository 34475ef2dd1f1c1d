# frozen_string_literal: true

module AceMQ
  module SpecSupport
    # A transport such as an application writes for its specs: only `publish`. What it does for a routing key can be
    # scripted.
    class ScriptedTransport
      Published = Struct.new(:exchange, :routing_key, :body, :content_type, :message_id, :headers, :persistent,
                             :mandatory, keyword_init: true)

      attr_reader :published

      def initialize
        @published = []
        @scripts = Hash.new { |scripts, key| scripts[key] = [] }
      end

      # @param routing_key [String]
      # @param errors [Array<Exception, Proc, nil>] raised in turn, the last one for ever; nil publishes
      def script(routing_key, *errors)
        @scripts[routing_key] = errors
      end

      def publish(exchange:, routing_key:, body:, content_type:, message_id:, headers:, persistent:, mandatory:)
        step = next_step(routing_key)
        step = step.call if step.respond_to?(:call)
        raise step if step.is_a?(Exception)

        @published << Published.new(exchange: exchange, routing_key: routing_key, body: body,
                                    content_type: content_type, message_id: message_id, headers: headers,
                                    persistent: persistent, mandatory: mandatory)
        message_id
      end

      def ids = published.map(&:message_id)

      private

      def next_step(routing_key)
        steps = @scripts[routing_key]
        steps.size > 1 ? steps.shift : steps.first
      end
    end
  end
end
