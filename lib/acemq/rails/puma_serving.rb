# frozen_string_literal: true

# Loaded by Puma's plugin too, before the application is.
module AceMQ
  module Rails
    # Has Puma start relays in the processes in which it serves: in its only one, or in each worker of a cluster, and
    # never in the cluster's master, which would fork away from them.
    #
    # @api private
    module PumaServing
      # What Puma calls the server of its control app, which the master runs.
      CONTROL = "ctl"
      # What Puma calls the process of a worker. A hook for the index would be warned of where there are no workers.
      WORKER = /cluster worker (\d+)/

      # In front of Puma::Server.
      module Hook
        def run(*arguments, **options, &block)
          PumaServing.begin unless options[:thread_name] == CONTROL
          super
        end
      end

      class << self
        # The relay plugin is in use: one relay for all of Puma.
        #
        # @return [nil]
        def one_relay
          @one_relay = true
          hook
        end

        # @return [nil]
        def hook
          require "puma"
          require "puma/server"
          ::Puma::Server.prepend(Hook)
          nil
        rescue LoadError
          nil # another server
        end

        # Whatever goes wrong here, Puma has requests to serve.
        #
        # @return [nil]
        def begin
          return unless defined?(AceMQ::Rails::Railtie)

          connect if AceMQ::Rails.config.connect_on_boot
          start unless @one_relay && $PROGRAM_NAME[WORKER, 1].to_i.positive?
          nil
        rescue StandardError => e
          AceMQ::Rails.logger.error("acemq: the outbox relay did not start with Puma: #{e.class}: #{e.message}")
        end

        # @return [nil]
        def end
          AceMQ::Rails::Railtie.close if defined?(AceMQ::Rails::Railtie)
          nil
        end

        private

        def start
          Relays.keep(plain) if @one_relay && Relays.kept.empty?
          Relays.start
        end

        def plain
          AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, AMQP::Patterns::ActiveRecordOutboxStore.new)
        end

        # The worker's own, before its first request; the parent's is not its.
        def connect
          AceMQ::Rails.connection.connect
        rescue AMQP::TransportError => e
          AceMQ::Rails.logger.error("acemq: no connection yet, it is tried again when one is needed: #{e.message}")
        end
      end
    end
  end
end
