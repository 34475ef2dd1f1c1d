# frozen_string_literal: true

require_relative "../amqp/errors"

module AceMQ
  module Rails
    # Named values with defaults, that refuse a name which does not exist. A value that is nil has its default.
    #
    # A subclass has `PATH`, what its settings are called by in messages, and `DEFAULTS`.
    class Settings
      class << self
        private

        # A reader and a writer for each of the subclass's DEFAULTS.
        #
        # @param except [Symbol, nil] one that has them already
        def define_settings(except: nil)
          (self::DEFAULTS.keys - [except]).each do |name|
            define_method(name) { @settings.fetch(name, self.class::DEFAULTS[name]) }
            define_method(:"#{name}=") { |value| set(name, value) }
          end
        end
      end

      # @param settings [Hash] names as Symbols or Strings, with underscores or dashes
      # @raise [AceMQ::AMQP::ConfigurationError] naming what it does not know, and what it does
      def initialize(settings = {})
        @settings = {}
        add(settings)
      end

      # Adds the settings that have not been made yet: a file's, beside those of Ruby.
      #
      # @param settings [Hash] as for {#initialize}
      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def add(settings)
        named(settings).each { |name, value| set(name, value) unless @settings.key?(name) }
        self
      end

      # @param name [Symbol, String]
      # @return [Object]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def [](name)
        public_send(known(name))
      end

      # @param name [Symbol, String]
      # @raise [AceMQ::AMQP::ConfigurationError]
      def []=(name, value)
        public_send(:"#{known(name)}=", value)
      end

      # @return [Hash{Symbol => Object}] what has been set, secrets included
      def to_h
        @settings.dup
      end

      # @return [String] without secrets
      def inspect
        shown = to_h.map { |name, value| "#{name}=#{shown(name, value)}" }
        "#<#{[self.class, *shown].join(" ")}>"
      end
      alias to_s inspect

      # A setting that does not exist, by `config.acemq.ulr = ...`.
      def method_missing(name, *arguments)
        return super unless name.end_with?("=") && arguments.one?

        known(name.name.delete_suffix("="))
      end

      def respond_to_missing?(_name, _include_private = false)
        false
      end

      private

      def set(name, value)
        value.nil? ? @settings.delete(name) : @settings[name] = value
      end

      def named(settings)
        unless settings.nil? || settings.respond_to?(:each_pair)
          raise AMQP::ConfigurationError, "#{self.class::PATH} must be settings by name, not #{settings.class}"
        end

        settings.to_h.transform_keys { |name| known(name) }
      end

      def known(name)
        symbol = name.to_s.tr("-", "_").to_sym
        return symbol if self.class::DEFAULTS.key?(symbol)

        raise AMQP::ConfigurationError, "#{self.class::PATH} has no #{symbol}; " \
                                        "its settings are #{self.class::DEFAULTS.keys.join(", ")}"
      end

      def shown(_name, value)
        value.inspect
      end
    end
  end
end
