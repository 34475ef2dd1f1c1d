# frozen_string_literal: true

require_relative "../amqp"
require_relative "handler"
require_relative "registry"

module AceMQ
  module Rails
    # Consumer classes at work in this process. `acemq-consumer` is this until a signal.
    #
    # @example
    #   exit(75) unless AceMQ::Rails::Runner.new(config: AceMQ::Rails.config).run
    class Runner
      SIGNALS = %w[INT TERM].freeze

      # @param config [Configuration]
      # @param connection [AceMQ::AMQP::Connection, nil] the process's own when nil
      # @param logger [Logger, nil]
      def initialize(config: AceMQ::Rails.config, connection: nil, logger: nil)
        @config = config
        @given = connection
        @logger = logger || AceMQ::Rails.logger
        @wishes = Thread::Queue.new
        @consumers = []
      end

      # Consumes until SIGINT or SIGTERM, then lets handlers finish.
      #
      # @param classes [Array<Class>, nil] all that are loaded when nil
      # @return [Boolean] whether everything was finished in time
      # @raise (see #start)
      def run(classes = nil)
        trapping do |former|
          start(classes)
          wish = @wishes.pop
          Signal.trap("INT", former["INT"]) # a second Ctrl-C means it
          say("#{wish}: finishing what is under way, #{@config.shutdown_timeout} s at most")
          drain
        end
      end

      # Subscribes; handlers run on threads of their own from here on.
      #
      # @param classes [Array<Class>, nil] all that are loaded when nil
      # @return [self]
      # @raise [AceMQ::AMQP::ConfigurationError] when there is no class to run
      # @raise [AceMQ::AMQP::TransportError] for a broker that is away, a queue that is missing, a topology that is
      #   refused
      def start(classes = nil)
        classes ||= Registry.consumers
        refuse_nothing if classes.empty?
        warn_of_reloading
        warn_of_pool(classes)
        @connection = @given || AceMQ::Rails.connection
        declare_topology
        subscribe_all(classes)
        self
      end

      # Stops consuming, waits for handlers, closes what the connection has, relays first, and the connection.
      #
      # @param timeout [Numeric, nil] seconds for all of it together; the setting `shutdown_timeout` when nil
      # @return [Boolean] whether everything was finished in time; otherwise the log says what was not
      def drain(timeout: nil)
        return true unless @connection

        close(timeout || @config.shutdown_timeout)
        say("everything is finished")
        true
      rescue StandardError => e
        @logger.error("acemq: not everything was finished: #{e.class}: #{e.message}")
        false
      ensure
        @connection = nil
        @consumers = []
      end

      # Ends {#run} from another thread, as a signal does; what was only started is drained.
      #
      # @return [Boolean, nil] that of {#drain}; nil when it is {#run} that drains
      def stop
        return drain unless @running

        @wishes << "stop"
        nil
      end

      # @return [Array<AceMQ::AMQP::Consumer>] a copy
      def consumers
        @consumers.dup
      end

      private

      # A signal handler may do next to nothing, so it only says what came.
      def trapping
        former = SIGNALS.to_h { |signal| [signal, Signal.trap(signal) { @wishes << "SIG#{signal}" }] }
        @running = true
        yield former
      ensure
        @running = false
        former&.each { |signal, handler| Signal.trap(signal, handler || "DEFAULT") }
      end

      def refuse_nothing
        raise AMQP::ConfigurationError, "there is no consumer class to run: a class has to inherit from " \
                                        "AceMQ::Rails::Consumer, say its queue, and be loaded (app/consumers, " \
                                        "or config.acemq.consumer_paths)"
      end

      def declare_topology
        return if !@config.declare_topology_on_boot || @config.topology.empty?

        @connection.apply(@config.build_topology)
      end

      def subscribe_all(classes)
        classes.each { |consumer_class| @consumers << subscribe(consumer_class) }
      rescue StandardError
        @consumers.each { |consumer| consumer.cancel(timeout: 0) }
        raise
      end

      def subscribe(consumer_class)
        handler = Handler.new(consumer_class, logger: @logger)
        options = options_of(consumer_class)
        consumer = @connection.consume(consumer_class.queue, **options) { |message| handler.call(message) }
        say("#{consumer_class} consumes #{consumer_class.queue}, #{options[:concurrency]} at a time")
        consumer
      rescue AMQP::TransportError => e
        raise AMQP::TransportError, "#{consumer_class} cannot consume #{consumer_class.queue}: #{e.message}"
      end

      def options_of(consumer_class)
        { codec: consumer_class.codec, retry_policy: consumer_class.retries, prefetch: consumer_class.prefetch,
          concurrency: consumer_class.concurrency || @config.consumer.concurrency, tag: consumer_class.tag,
          arguments: consumer_class.arguments, retry_threshold: consumer_class.broker_wait_threshold }.compact
      end

      def close(timeout)
        if AceMQ::Rails.connection?(@connection)
          AceMQ::Rails.disconnect!(timeout: timeout)
        else
          @connection.close(timeout: timeout)
        end
      end

      def warn_of_reloading
        return unless defined?(::Rails) && ::Rails.respond_to?(:application) && ::Rails.application
        return unless reloading?(::Rails.application.config)

        @logger.warn("acemq: code reloading is on: a consumer keeps the class it began with, and two handlers that " \
                     "load code at the same time can wait for each other for ever")
      end

      # `cache_classes` before Rails 7.1.
      def reloading?(settings)
        settings.respond_to?(:enable_reloading) ? settings.enable_reloading : !settings.cache_classes
      end

      def warn_of_pool(classes)
        return unless defined?(::ActiveRecord::Base)

        handlers = classes.sum { |consumer_class| consumer_class.concurrency || @config.consumer.concurrency }
        size = ::ActiveRecord::Base.connection_pool.size
        return if handlers <= size

        @logger.warn("acemq: #{handlers} handlers share #{size} database connections; raise pool in " \
                     "config/database.yml, or some will wait, and fail after checkout_timeout")
      rescue ::ActiveRecord::ActiveRecordError
        nil # no database is configured
      end

      def say(text)
        @logger.info("acemq: #{text}")
      end
    end
  end
end
