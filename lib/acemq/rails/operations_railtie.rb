# frozen_string_literal: true

require "rails/railtie"
require_relative "log_subscriber"

module AceMQ
  module Rails
    autoload :OutboxHealthCheck, File.expand_path("outbox_health_check", __dir__)
    autoload :OutboxPruneJob, File.expand_path("outbox_prune_job", __dir__)
    autoload :OutboxRelayJob, File.expand_path("outbox_relay_job", __dir__)
    autoload :Probe, File.expand_path("probe", __dir__)
    autoload :ProbeServer, File.expand_path("probe_server", __dir__)

    # What is there to operate an application with: its log, its tasks, jobs and probes.
    class OperationsRailtie < ::Rails::Railtie
      initializer("acemq.log_subscriber") { LogSubscriber.attach_to(:acemq) }

      rake_tasks { load File.expand_path("outbox.rake", __dir__) }
    end
  end
end
