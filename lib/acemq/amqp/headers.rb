# frozen_string_literal: true

require "date"
require_relative "short_string"
require_relative "text"

module AceMQ
  module AMQP
    # Message headers and declaration arguments: names, values and sizes that
    # AMQP 0-9-1 can carry, checked before anything is written.
    #
    # | Ruby | on the wire |
    # |---|---|
    # | String, Symbol | long string (a binary String keeps its bytes) |
    # | Integer | 64 bit, whatever its size |
    # | Float | double; NaN and the infinities are refused |
    # | true, false, nil | the same |
    # | Time, DateTime | timestamp, whole seconds, from 1970 on |
    # | BigDecimal | decimal: not negative, digits up to 4294967295 |
    # | Array, Hash | the same, of the above |
    module Headers
      # Names that start so belong to the library.
      RESERVED_PREFIX = "x-acemq-"

      ID = "x-acemq-id"
      TYPE = "x-acemq-type"
      VERSION = "x-acemq-version"
      CORRELATION = "x-acemq-correlation"
      CAUSATION = "x-acemq-causation"
      ATTEMPT = "x-acemq-attempt"
      FIRST_SEEN = "x-acemq-first-seen"
      ORIGIN = "x-acemq-origin"
      ERROR = "x-acemq-error"
      CLAIM = "x-acemq-claim"
      # The way through a declared pipeline; carried, never interpreted here.
      ROUTE = %w[x-acemq-route x-acemq-route-position x-acemq-route-id].freeze

      # The broker reads further routing keys from these, and closes the channel
      # over anything but lists of text.
      COPIES = %w[CC BCC].freeze

      # The broker drops a message, silently, that expires towards a queue which it says to have expired from before.
      DEATHS = "x-death"

      # How often a message came back to its quorum queue, which drops it when that is beyond its delivery limit.
      DELIVERY_COUNT = "x-delivery-count"

      # Whose content belongs to the broker or to one publish, and is wrong on the next: the ones would send further
      # copies, the count is that of another queue.
      STALE = [*COPIES, DELIVERY_COUNT].freeze

      INT64 = (-(2**63)..((2**63) - 1))

      # Headers travel in one frame, of 131072 bytes unless the broker is set up
      # otherwise, together with the other properties of the message.
      MAX_BYTES = 130_000

      # Nesting beyond this is taken for a structure that contains itself.
      MAX_DEPTH = 32

      class << self
        # @param headers [Hash, nil] names are Strings or Symbols
        # @return [Hash{String => Object}] what AMQP can carry, names as Strings
        # @raise [ArgumentError] naming the header that cannot be carried
        def render(headers)
          table(headers || {}, nil, 0)
        end

        # For headers given by an application, which may not use the library's names.
        #
        # @param headers [Hash, nil]
        # @return [Hash{String => Object}]
        # @raise [ArgumentError] also for names that start with "x-acemq-"
        def application(headers)
          rendered = copies!(render(headers))
          reserved = rendered.keys.select { |name| name.start_with?(RESERVED_PREFIX) }.sort
          return rendered if reserved.empty?

          raise ArgumentError, "headers may not set #{reserved.join(", ")}: names starting with #{RESERVED_PREFIX} " \
                               "belong to the library; use the envelope's keywords or another name"
        end

        # Headers of a message that waits in a table are kept as JSON, which has
        # neither times nor decimals nor bytes. Refused here, they fail in the
        # transaction that wrote them and not hours later in the relay.
        #
        # @param headers [Hash, nil]
        # @return [Hash{String => Object}] the rendered headers
        # @raise [ArgumentError] naming the header
        def storable!(headers)
          rendered = copies!(render(headers))
          rendered.each { |name, value| storable_value!(value, name) }
          size = wire_size(rendered)
          return rendered if size <= MAX_BYTES

          largest = rendered.max_by { |name, value| wire_size(name => value) }.first
          raise ArgumentError, "headers are #{size} bytes long and one AMQP frame carries about #{MAX_BYTES}; " \
                               "the largest is #{largest.inspect}: move it into the body"
        end

        # @param headers [Hash] rendered headers
        # @return [Integer] bytes of the encoded table
        def wire_size(headers)
          4 + headers.sum { |name, value| 1 + name.bytesize + value_size(value) }
        end

        private

        def copies!(rendered)
          COPIES.each do |name|
            next unless rendered.key?(name)

            keys = rendered[name]
            refuse(name, "must be an Array of routing keys") unless keys.is_a?(Array) && keys.all?(String)
          end
          rendered
        end

        def table(hash, path, depth)
          unless hash.respond_to?(:to_hash)
            raise ArgumentError, "#{path ? "header #{path}" : "headers"} must be a Hash, not #{hash.class}"
          end

          hash.to_hash.each_with_object({}) do |(key, value), rendered|
            name = ShortString.check!(key, "a header name#{" in #{path}" if path}")
            here = path ? "#{path}.#{name}" : name
            raise ArgumentError, "header #{here} is given twice, as a String and as a Symbol" if rendered.key?(name)

            rendered[name] = wire_value(value, here, depth)
          end
        end

        def wire_value(value, path, depth)
          refuse(path, "is nested deeper than #{MAX_DEPTH} levels") if depth > MAX_DEPTH

          case value
          when nil, true, false then value
          when String then text(value, path)
          when Symbol then text(value.name, path)
          when Integer then integer(value, path)
          when Float then float(value, path)
          when Array then value.each_with_index.map { |item, i| wire_value(item, "#{path}[#{i}]", depth + 1) }
          when Hash then table(value, path, depth + 1)
          else rarer(value, path)
          end
        end

        def rarer(value, path)
          case value
          when Time, DateTime then timestamp(value, path)
          when Decimal then decimal(value, path)
          else refuse(path, "is a #{value.class}, which AMQP headers cannot carry; give a String")
          end
        end

        # A String tagged as binary is bytes and stays so.
        def text(value, path)
          return String.new(value) if value.encoding == Encoding::BINARY

          Text.utf8(value) ||
            refuse(path, "is not valid #{value.encoding}; correct it, or tag it as bytes with String#b")
        end

        def integer(value, path)
          return value if INT64.cover?(value)

          refuse(path, "is #{value}, beyond a 64 bit integer; give a String")
        end

        def float(value, path)
          return value if value.finite?

          refuse(path, "is #{value}, which is no number")
        end

        # By way of strftime, which Time, DateTime and ActiveSupport's time with
        # zone all answer alike; their conversions depend on its configuration.
        def timestamp(value, path)
          seconds = value.strftime("%s").to_i
          return Time.at(seconds).utc unless seconds.negative?

          refuse(path, "is #{value.strftime("%FT%T%:z")}, and AMQP has no time before 1970; give a String")
        end

        def decimal(value, path)
          return value if Decimal.carried?(value)

          refuse(path, "is a BigDecimal beyond AMQP's 32 bit unsigned decimals; give a String")
        end

        def storable_value!(value, path)
          case value
          when Time then refuse_stored(path, "a Time", "its iso8601 or to_i")
          when Decimal then refuse_stored(path, "a BigDecimal", "its to_s")
          when String then storable_text!(value, path)
          when Array then value.each_with_index { |item, i| storable_value!(item, "#{path}[#{i}]") }
          when Hash then value.each { |name, item| storable_value!(item, "#{path}.#{name}") }
          end
        end

        def storable_text!(value, path)
          refuse_stored(path, "binary", "it in base64") unless Text.utf8(value)
        end

        def refuse_stored(path, what, instead)
          refuse(path, "is #{what}, which a stored message cannot keep (its headers are kept as JSON); give #{instead}")
        end

        def refuse(path, problem)
          raise ArgumentError, "header #{path} #{problem}"
        end

        def value_size(value)
          1 + case value
              when nil then 0
              when true, false then 1
              when String then 4 + value.bytesize
              when Array then 4 + value.sum { |item| value_size(item) }
              when Hash then wire_size(value)
              when Decimal then 5
              else 8
              end
        end
      end

      # BigDecimal, where it is loaded: it is a gem of its own in later Rubies, and
      # a program that has no such values need not have it.
      #
      # @api private
      module Decimal
        MAX_UNSCALED = (2**32) - 1
        MAX_SCALE = 255

        def self.===(value)
          defined?(::BigDecimal) ? value.is_a?(::BigDecimal) : false
        end

        def self.carried?(value)
          return false if !value.finite? || value.negative?

          scale = [value.scale, 0].max
          scale <= MAX_SCALE && (value * (10**scale)).to_i <= MAX_UNSCALED
        end
      end
      private_constant :Decimal
    end
  end
end
