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
        new.value(payload, "$", 0)
      end

      def value(object, path, depth)
        refuse(path, "is nested deeper than #{MAX_DEPTH} levels") if depth > MAX_DEPTH

        case object
        when nil, true, false, Integer then object
        when String then text(object, path)
        when Symbol then text(object.name, path)
        when Float then float(object, path)
        when Hash then hash(object, path, depth)
        when Array, Set then array(object, path, depth)
        else moment(object) || decimal(object, path) || converted(object, path, depth)
        end
      end

      private

      def text(string, path)
        Text.utf8(string) ||
          refuse(path, "is not valid #{string.encoding} text; write bytes in base64, or publish them with BytesCodec")
      end

      def float(number, path)
        number.finite? ? number : refuse(path, "is #{number}, which JSON does not have")
      end

      def hash(object, path, depth)
        object.each_with_object({}) do |(key, item), result|
          name = key(key, path)
          refuse("#{path}.#{name}", "is given twice, under keys that are written alike") if result.key?(name)

          result[name] = value(item, "#{path}.#{name}", depth + 1)
        end
      end

      def key(key, path)
        case key
        when String, Symbol then text(key.to_s, "a key of #{path}")
        when Integer then key.to_s
        when Float then float(key, "a key of #{path}").to_s
        else refuse("a key of #{path}", "is a #{key.class}; use a String")
        end
      end

      def array(object, path, depth)
        object.each_with_index.map { |item, index| value(item, "#{path}[#{index}]", depth + 1) }
      end

      # By strftime alone, which all of them answer alike; their other conversions
      # change with ActiveSupport and its settings.
      def moment(object)
        case object
        when Time, DateTime then object.strftime("%Y-%m-%dT%H:%M:%S.%L%:z").sub(/\+00:00\z/, "Z")
        when Date then object.strftime("%Y-%m-%d")
        end
      end

      def decimal(object, path)
        return unless defined?(::BigDecimal) && object.is_a?(::BigDecimal)

        object.finite? ? object.to_s("F") : refuse(path, "is #{object}, which JSON does not have")
      end

      def converted(object, path, depth)
        return value(object.__getobj__, path, depth + 1) if defined?(::Delegator) && object.is_a?(::Delegator)

        value(conversion(object, path), path, depth + 1)
      end

      def conversion(object, path)
        return object.as_json if own_method?(object, :as_json) { |m| m.source_location&.first !~ GENERIC_AS_JSON }
        return object.to_h if own_method?(object, :to_h) { |m| m.owner != Enumerable }

        refuse(path, "is a #{object.class}, which has neither an as_json of its own nor a to_h; convert it first")
      rescue EncodeError
        raise
      rescue StandardError => e
        refuse(path, "is a #{object.class} that could not be converted: #{e.class}: #{e.message[0, 120]}")
      end

      def own_method?(object, name)
        object.respond_to?(name) && yield(object.method(name))
      end

      def refuse(path, problem)
        raise EncodeError, "cannot encode the payload as JSON: #{path} #{problem}"
      end
    end
  end
end
