# frozen_string_literal: true

require "date"
require "set"
require_relative "errors"
require_relative "text"

module AceMQ
  module AMQP
    # A payload as plain JSON data. ActiveSupport's encoder and Ruby's disagree on
    # times, decimals, NaN and much else, so neither is asked:
    #
    # | Ruby | JSON |
    # |---|---|
    # | nil, true, false | the same |
    # | String, Symbol | string, in UTF-8 |
    # | Integer | number, exactly, of any size |
    # | Float | number; NaN and the infinities are refused |
    # | BigDecimal | string, plain: "1.1" |
    # | Time, DateTime, ActiveSupport's time with zone | string: "2026-01-02T03:04:05.678Z", offset kept |
    # | Date | string: "2026-01-02" |
    # | Hash | object; keys are Strings, Symbols or numbers |
    # | Array, Set | array |
    # | an object with an `as_json` of its own, or else a `to_h` | what that returns |
    #
    # Everything else is refused, as are bytes that are not UTF-8 and a Hash that
    # has a key both as a String and as a Symbol.
    #
    # @api private
    class JSONValue
      # As deep as Ruby's parser reads by default.
      MAX_DEPTH = 100

      # ActiveSupport gives every object an `as_json`: its instance variables, or
      # its `to_s`. Only what an application or a library defined on purpose counts.
      GENERIC_AS_JSON = %r{/active_support/core_ext/}

      # @param payload [Object]
      # @return [Object] of Hash, Array, String, Integer, Float, true, false, nil
      # @raise [EncodeError] naming the place, as in `$.items[3].price`
      def self.of(payload)
        new.value(payload)
      end

      def initialize
        # The keys and indexes that lead to the value at hand; spelled out only for an error.
        @path = []
      end

      # @return [Object]
      # @raise [EncodeError]
      def value(object)
        case object
        when String then text(object)
        when nil, true, false, Integer then object
        when Hash then nested { hash(object) }
        when Array then nested { array(object) }
        when Symbol then text(object.name)
        when Float then float(object)
        else rarer(object)
        end
      end

      private

      def nested
        refuse("is nested deeper than #{MAX_DEPTH} levels") if @path.size >= MAX_DEPTH

        yield
      end

      # The path is left as it is when something raises: it tells where.
      def inside(step, object)
        @path.push(step)
        plain = value(object)
        @path.pop
        plain
      end

      def text(string)
        Text.utf8(string) ||
          refuse("is not valid #{string.encoding} text; write bytes in base64, or publish them with BytesCodec")
      end

      def float(number)
        number.finite? ? number : refuse("is #{number}, which JSON does not have")
      end

      def hash(object)
        result = {}
        object.each_pair do |key, item|
          name = key(key)
          refuse("has #{name.inspect} twice, under keys that are written alike") if result.key?(name)

          result[name] = inside(name, item)
        end
        result
      end

      def key(key)
        case key
        when String then key_text(key)
        when Symbol then key_text(key.name)
        when Integer then key.to_s
        when Float then float(key).to_s
        else refuse("has a key that is a #{key.class}; use a String")
        end
      end

      def key_text(key)
        Text.utf8(key) || refuse("has a key that is not valid #{key.encoding} text")
      end

      def array(object)
        object.each_with_index.map { |item, index| inside(index, item) }
      end

      def rarer(object)
        return nested { array(object) } if object.is_a?(Set)

        moment(object) || decimal(object) || nested { converted(object) }
      end

      # By strftime alone, which all of them answer alike; their other conversions
      # change with ActiveSupport and its settings.
      def moment(object)
        case object
        when Time, DateTime then object.strftime("%Y-%m-%dT%H:%M:%S.%L%:z").sub(/\+00:00\z/, "Z")
        when Date then object.strftime("%Y-%m-%d")
        end
      end

      def decimal(object)
        return unless defined?(::BigDecimal) && object.is_a?(::BigDecimal)

        object.finite? ? object.to_s("F") : refuse("is #{object}, which JSON does not have")
      end

      # One that answers with another like itself would go on for ever; each answer counts as a step down.
      def converted(object)
        delegator = defined?(::Delegator) && object.is_a?(::Delegator)
        inside(nil, delegator ? object.__getobj__ : conversion(object))
      end

      def conversion(object)
        return object.as_json if own_method?(object, :as_json) { |m| m.source_location&.first !~ GENERIC_AS_JSON }
        return object.to_h if own_method?(object, :to_h) { |m| m.owner != Enumerable }
      rescue StandardError => e
        refuse("is a #{object.class} that could not be converted: #{e.class}: #{e.message[0, 120]}")
      else
        refuse("is a #{object.class}, which has neither an as_json of its own nor a to_h; convert it first")
      end

      def own_method?(object, name)
        object.respond_to?(name) && yield(object.method(name))
      end

      def refuse(problem)
        raise EncodeError, "cannot encode the payload as JSON: #{place} #{problem}"
      end

      def place
        @path.compact.reduce("$") { |text, step| step.is_a?(Integer) ? "#{text}[#{step}]" : "#{text}.#{step}" }
      end
    end
  end
end
