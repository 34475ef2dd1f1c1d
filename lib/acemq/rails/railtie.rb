# frozen_string_literal: true

require "rails/railtie"
require_relative "../amqp/patterns"
require_relative "process_kind"
require_relative "puma_serving"
require_relative "relays"

module AceMQ
  module Rails
    # Takes the settings from the application, starts what serves where it serves, and closes it when the process ends.
    class Railtie < ::Rails::Railtie
      config.acemq = AceMQ::Rails.config

      AMQP::Patterns::Relay::Gate.keeper = Relays

      # Before the environment's file, which thereby wins over config/acemq.yml, and
      # after application.rb, whose settings are left alone.
      initializer "acemq.config_for", before: :load_environment_config do |app|
        Railtie.take_settings(app)
        AceMQ::Rails.config.add(Railtie.settings_of_file(app))
        Relays.initialising
      end

      # Rails freezes its lists of folders after this.
      initializer "acemq.consumer_paths", after: :load_environment_config, before: :set_autoload_paths do |app|
        folders = [AceMQ::Rails.config.consumer_paths].flatten.map { |path| File.expand_path(path.to_s, app.root) }
        app.config.autoload_paths += folders
        app.config.eager_load_paths += folders
      end

      config.after_initialize do |app|
        Railtie.take_settings(app)
        AceMQ::Rails.config.validate!
        Railtie.connect if AceMQ::Rails.config.connect_on_boot
        PumaServing.hook if ProcessKind.web?
        at_exit { Railtie.close }
      end

      rake_tasks { load File.expand_path("tasks.rake", __dir__) }

      class << self
        # Where an application has put settings of its own in our place: `config.acemq = { url: ... }`.
        # @api private
        def take_settings(app)
          given = app.config.acemq
          return if given.equal?(AceMQ::Rails.config)

          AceMQ::Rails::Configuration.new(given).to_h.each { |name, value| AceMQ::Rails.config[name] = value }
          app.config.acemq = AceMQ::Rails.config
        end

        # @api private
        def settings_of_file(app)
          file = app.paths["config"].existent.map { |folder| File.join(folder, "acemq.yml") }.find { |path| File.exist?(path) }
          return {} unless file

          (app.config_for(:acemq) || {}).to_h
        end

        # Neither a migration nor a build of assets needs the broker to be there.
        #
        # @api private
        def connect
          AceMQ::Rails.connection.connect unless ProcessKind.passing?
        end

        # @api private
        def close
          deadline = AMQP::Deadline.in(AceMQ::Rails.config.shutdown_timeout)
          Relays.close(deadline)
          AceMQ::Rails.disconnect!(timeout: deadline.left)
        rescue StandardError => e
          warn "acemq: the connection could not be closed cleanly: #{e.class}: #{e.message}"
        end
      end
    end
  end
end

require_relative "operations_railtie"
