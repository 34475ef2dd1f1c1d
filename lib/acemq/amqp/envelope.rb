# frozen_string_literal: true

require_relative "headers"

module AceMQ
  module AMQP
    # Who a message is: its identity and history, carried in `x-acemq-*` headers
    # and the same in every library of the family. Frozen.
    class Envelope
      # Every keyword of {#initialize}.
      FIELDS = %i[id type version correlation_id causation_id attempt first_seen origin error claim headers route].freeze

      # @return [String] also the AMQP message id
      attr_reader :id
      # @return [String] what kind of message it is; the routing key when empty
      attr_reader :type
      # @return [Integer] of the type, from 1
      attr_reader :version
      # @return [String] shared by all messages of one conversation
      attr_reader :correlation_id
      # @return [String] the message that caused this one, or ""
      attr_reader :causation_id
      # @return [Integer] from 1
      attr_reader :attempt
      # @return [Integer] milliseconds since 1970, exactly as on the wire
      attr_reader :first_seen_ms
      # @return [String] who sent it first
      attr_reader :origin
      # @return [String] why it was set aside, or ""
      attr_reader :error
      # @return [String] where a body kept elsewhere is to be found, or ""
      attr_reader :claim
      # @return [Hash{String => Object}] the application's own headers
      attr_reader :headers
      # @return [Hash{String => Object}] the pipeline headers, as they were received
      attr_reader :route

      class << self
        # Reads what a delivery carries. Never refuses one: what cannot be read is
        # taken as absent. Names of the library that this version does not know are dropped.
        #
        # @param headers [Hash, nil] as received
        # @param routing_key [String] the type of a message that names none
        # @param message_id [String, nil] the AMQP property: who a message from
        #   another producer is, so that its redelivery is recognised
        # @return [Envelope]
        def from_headers(headers, routing_key = "", message_id: nil)
          reserved = {}
          own = {}
          (headers || {}).to_h.each do |name, value|
            name = name.to_s
            (name.start_with?(Headers::RESERVED_PREFIX) ? reserved : own)[name] = value
          end
          allocate.tap { |envelope| envelope.send(:read, Reader.new(reserved), own, routing_key, message_id) }
        end
      end

      # @param id [String, nil] a new UUID v7 when nil or empty
      # @param type [String]
      # @param version [Integer] floored at 1
      # @param correlation_id [String, nil] the id when nil or empty
      # @param causation_id [String]
      # @param attempt [Integer] floored at 1
      # @param first_seen [Time, nil] kept in milliseconds; now when nil
      # @param origin [String]
      # @param error [String]
      # @param claim [String]
      # @param headers [Hash] see {Headers} for the values
      # @param route [Hash] the pipeline headers
      # @raise [ArgumentError] for a header that AMQP cannot carry or that is reserved
      def initialize(id: nil, type: "", version: 1, correlation_id: nil, causation_id: "", attempt: 1,
                     first_seen: nil, origin: "", error: "", claim: "", headers: {}, route: {})
        @id = presence(id, :id) || AceMQ::Native.uuid_v7
        @type = string(type, :type)
        @version = at_least_one(version, :version)
        @correlation_id = presence(correlation_id, :correlation_id) || @id
        @causation_id = string(causation_id, :causation_id)
        @attempt = at_least_one(attempt, :attempt)
        @first_seen_ms = milliseconds(first_seen)
        @origin = string(origin, :origin)
        @error = string(error, :error)
        @claim = string(claim, :claim)
        @headers = Headers.application(headers).freeze
        @route = route_headers(route).freeze
        freeze
      end

      # @return [Time] when it was first sent, in UTC, to the millisecond
      def first_seen
        Time.at(first_seen_ms / 1000, first_seen_ms % 1000, :millisecond).utc
      end

      # @return [Float] seconds since it was first sent
      def age
        (now_ms - first_seen_ms) / 1000.0
      end

      # @param routing_key [String] the type of a message that names none
      # @return [Hash{String => Object}] a new Hash
      def to_headers(routing_key = "")
        reserved_headers(routing_key).merge!(route, headers)
      end

      # @param changes [Hash] any of {FIELDS}
      # @return [Envelope] a copy with these fields changed
      # @raise [ArgumentError] for an unknown field
      def with(**changes)
        changed = self.class.new(**fields, **changes)
        kept = { "@headers": headers, "@route": route }.reject { |name, _| changes.key?(name[1..].to_sym) }
        kept.empty? ? changed : changed.send(:carrying, kept)
      end

      # @return [Boolean] whether both would be written alike
      def ==(other)
        other.is_a?(Envelope) && to_headers == other.to_headers
      end
      alias eql? ==

      # @return [Integer]
      def hash
        to_headers.hash
      end

      private

      # What was received is not checked again: refusing it would leave a message that can be neither handled nor set
      # aside.
      def read(reader, own, routing_key, message_id)
        read_identity(reader, routing_key, message_id)
        @version = [reader.integer(Headers::VERSION) || 1, 1].max
        @attempt = [reader.integer(Headers::ATTEMPT) || 1, 1].max
        @first_seen_ms = reader.integer(Headers::FIRST_SEEN) || now_ms
        @origin = reader.text(Headers::ORIGIN) || ""
        @error = reader.text(Headers::ERROR) || ""
        @claim = reader.text(Headers::CLAIM) || ""
        @headers = own.freeze
        @route = reader.route.freeze
        freeze
      end

      def read_identity(reader, routing_key, message_id)
        @id = reader.text(Headers::ID) || presence(message_id, :message_id) || AceMQ::Native.uuid_v7
        @type = reader.text(Headers::TYPE) || string(routing_key, :routing_key)
        @correlation_id = reader.text(Headers::CORRELATION) || @id
        @causation_id = reader.text(Headers::CAUSATION) || ""
      end

      # Received headers are carried on as they came: refusing one would leave a
      # message that can be neither handled nor set aside.
      def carrying(received)
        dup.tap { |copy| received.each { |name, headers| copy.instance_variable_set(name, headers) } }.freeze
      end

      def fields
        { id: id, type: type, version: version, correlation_id: correlation_id, causation_id: causation_id,
          attempt: attempt, first_seen: first_seen, origin: origin, error: error, claim: claim }
      end

      def reserved_headers(routing_key)
        {
          Headers::ID => id,
          Headers::TYPE => type.empty? ? string(routing_key, :routing_key) : type,
          Headers::VERSION => version,
          Headers::CORRELATION => correlation_id,
          Headers::ATTEMPT => attempt,
          Headers::FIRST_SEEN => first_seen_ms
        }.merge!(optional_headers)
      end

      def optional_headers
        { Headers::CAUSATION => causation_id, Headers::ORIGIN => origin,
          Headers::ERROR => error, Headers::CLAIM => claim }.reject { |_, value| value.empty? }
      end

      def route_headers(route)
        rendered = Headers.render(route)
        unknown = rendered.keys - Headers::ROUTE
        return rendered if unknown.empty?

        raise ArgumentError, "route has only #{Headers::ROUTE.join(", ")}, not #{unknown.join(", ")}"
      end

      def string(value, field)
        text = Text.utf8(value.to_s) || raise(ArgumentError, "#{field} is not valid #{value.encoding} text")
        text.frozen? ? text : text.dup.freeze
      end

      def presence(value, field)
        text = string(value, field)
        text unless text.empty?
      end

      def at_least_one(value, field)
        raise ArgumentError, "#{field} must be an Integer, not #{value.inspect}" unless value.is_a?(Integer)
        return [value, 1].max if Headers::INT64.cover?(value)

        raise ArgumentError, "#{field} is #{value}, beyond a 64 bit integer"
      end

      # A Rational, because a Float of today's seconds has no room for milliseconds.
      def milliseconds(time)
        return now_ms if time.nil?
        return (time.to_r * 1000).floor if time.is_a?(Time)
        return milliseconds(Time.at(time.strftime("%s").to_i, time.strftime("%N").to_i, :nsec)) if time.is_a?(DateTime)

        raise ArgumentError, "first_seen must be a Time, not #{time.class}"
      end

      def now_ms
        Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
      end

      # The reserved headers of a delivery, whoever wrote them.
      class Reader
        def initialize(reserved)
          @reserved = reserved
        end

        # @return [Hash{String => Object}] the pipeline headers
        def route
          @reserved.slice(*Headers::ROUTE)
        end

        # Libraries differ in what they write: any width of integer, or its digits.
        #
        # @return [Integer, nil]
        def integer(name)
          value = @reserved[name]
          value = value.to_i if value.is_a?(String) && value.match?(/\A-?\d{1,19}\z/)
          value if value.is_a?(Integer) && value.bit_length < 64
        end

        # @return [String, nil] frozen
        def text(name)
          value = @reserved[name]
          return unless value.is_a?(String) || value.is_a?(Integer)

          text = Text.utf8(value.to_s)
          text.dup.freeze unless text.nil? || text.empty?
        end
      end
      private_constant :Reader
    end
  end
end
