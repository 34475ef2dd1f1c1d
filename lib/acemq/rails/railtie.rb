# frozen_string_literal: true

require "rails/railtie"

module AceMQ
  module Rails
    # Takes the settings from the application, and closes the connection when the process ends.
    class Railtie < ::Rails::Railtie
      config.acemq = AceMQ::Rails.config

      # Before the environment's file, which thereby wins over config/acemq.yml, and
      # after application.rb, whose settings are left alone.
      initializer "acemq.config_for", before: :load_environment_config do |app|
        AceMQ::Rails.config.add(Railtie.settings_of_file(app))
      end

      config.after_initialize do
        AceMQ::Rails.config.validate!
        AceMQ::Rails.connection.connect if AceMQ::Rails.config.connect_on_boot
        at_exit { Railtie.disconnect }
      end

      class << self
        # @api private
        def settings_of_file(app)
          file = app.paths["config"].existent.map { |folder| File.join(folder, "acemq.yml") }.find { |path| File.exist?(path) }
          return {} unless file

          (app.config_for(:acemq) || {}).to_h
        end

        # @api private
        def disconnect
          AceMQ::Rails.disconnect!
        rescue StandardError => e
          warn "acemq: the connection could not be closed cleanly: #{e.class}: #{e.message}"
        end
      end
    end
  end
end
