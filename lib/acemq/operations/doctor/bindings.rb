# frozen_string_literal: true

module AceMQ
  module Operations
    class Doctor
      # The bindings of one exchange, and which of them a routing key meets.
      class Bindings
        # @param type [String] the exchange's
        # @param bindings [Array<Hash>] as the plugin describes them
        # @param alternate [String, nil] the exchange that takes what meets none of them
        def initialize(type, bindings, alternate)
          @type = type
          @bindings = bindings
          @alternate = alternate
        end

        # @return [Boolean]
        def for?(routing_key)
          !@alternate.nil? || met(routing_key).any?
        end

        # @return [String] what it reaches
        def shown(routing_key)
          names = met(routing_key).map { |binding| "#{binding["destination_type"]} #{binding["destination"]}" }.uniq
          names << "the alternate exchange #{@alternate}" if names.empty?
          names.first(3).join(", ") + (names.size > 3 ? " and #{names.size - 3} more" : "")
        end

        private

        # What a plugin's exchange makes of a key is its own business: any binding will do.
        def met(routing_key)
          case @type
          when "direct" then @bindings.select { |binding| binding["routing_key"] == routing_key }
          when "topic" then @bindings.select { |binding| topic?(binding["routing_key"].split(".", -1), routing_key.split(".", -1)) }
          else @bindings
          end
        end

        # `*` is one word, `#` any number of them.
        def topic?(pattern, words)
          return words.empty? if pattern.empty?

          first, *rest = pattern
          return topic?(rest, words) || (words.any? && topic?(pattern, words.drop(1))) if first == "#"

          words.any? && ["*", words.first].include?(first) && topic?(rest, words.drop(1))
        end
      end
    end
  end
end
