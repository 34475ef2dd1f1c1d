# frozen_string_literal: true

require "rails/railtie"
require_relative "log_subscriber"

module AceMQ
  module Rails
    # What is there to operate an application with: its log, its tasks, jobs and probes.
    class OperationsRailtie < ::Rails::Railtie
      initializer("acemq.log_subscriber") { LogSubscriber.attach_to(:acemq) }

      rake_tasks { load File.expand_path("outbox.rake", __dir__) }
    end
  end
end
