# frozen_string_literal: true

require_relative "errors"
require_relative "headers"

module AceMQ
  module AMQP
    # Which kind of queue a declaration asks for.
    module QueueType
      CLASSIC = :classic
      QUORUM = :quorum
      STREAM = :stream
      ALL = [CLASSIC, QUORUM, STREAM].freeze

      # What a queue is that says nothing else, and can be: it survives the loss of a node.
      DEFAULT = QUORUM

      # The declaration argument the broker reads it from.
      ARGUMENT = "x-queue-type"

      class << self
        # @param name [String] of the queue, for the error
        # @param requested [Symbol, String, nil] the `queue_type:` keyword
        # @param durable [Boolean]
        # @param exclusive [Boolean]
        # @param auto_delete [Boolean]
        # @param arguments [Hash, nil] may state the type instead
        # @return [Array(Symbol, Hash)] the type, and the arguments to declare with:
        #   a classic queue's do not name its type, so that queues declared long ago still match
        # @raise [QueueTypeError]
        def resolve(name:, requested: nil, durable: true, exclusive: false, auto_delete: false, arguments: {})
          rendered = Headers.render(arguments)
          type = agreed(name, requested, rendered[ARGUMENT])
          transient = { "durable: false" => !durable, "exclusive: true" => exclusive,
                        "auto_delete: true" => auto_delete }.select { |_, given| given }.keys
          type ||= transient.empty? ? DEFAULT : CLASSIC
          check_durability(name, type, transient)
          [type, with_argument(rendered, type)]
        end

        private

        def agreed(name, requested, argument)
          types = [requested, argument].compact.map { |given| known(name, given) }.uniq
          return types.first if types.size < 2

          raise QueueTypeError, "queue #{name.inspect} is asked to be #{types.first} by queue_type: and " \
                                "#{types.last} by the argument #{ARGUMENT}; state one"
        end

        def known(name, given)
          ALL.find { |type| type.name == given.to_s } ||
            raise(QueueTypeError, "queue #{name.inspect} cannot be of type #{given.inspect}; " \
                                  "there are #{ALL.join(", ")}")
        end

        def check_durability(name, type, transient)
          return if type == CLASSIC || transient.empty?

          raise QueueTypeError, "queue #{name.inspect} cannot be a #{type} queue with #{transient.join(" and ")}; " \
                                "use queue_type: :classic"
        end

        def with_argument(arguments, type)
          without = arguments.except(ARGUMENT)
          type == CLASSIC ? without : without.merge(ARGUMENT => type.name)
        end
      end
    end
  end
end
