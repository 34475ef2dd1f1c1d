# frozen_string_literal: true

require "puma/plugin"
require_relative "../../acemq/rails/puma_serving"

# `plugin :acemq_relay` in config/puma.rb: one outbox relay beside the requests, in Puma's only process or in the first
# worker of a cluster. It runs the relays that an initializer has started, or else one of its own on `acemq_outbox`.
Puma::Plugin.create do
  def config(dsl)
    AceMQ::Rails::PumaServing.one_relay
    hook(dsl, :before_worker_boot, :on_worker_boot) { |index| AceMQ::Rails::PumaServing.worker(index) }
    # A restart replaces the process without ending it.
    hook(dsl, :before_restart, :on_restart) { AceMQ::Rails::PumaServing.end }
  end

  # Puma 7 has new names for them.
  def hook(dsl, new_name, former_name, &block)
    dsl.public_send(dsl.respond_to?(new_name) ? new_name : former_name, &block)
  end
end
