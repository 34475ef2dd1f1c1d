# frozen_string_literal: true

require "puma/plugin"
require_relative "../../acemq/rails/puma_serving"

# `plugin :acemq_relay` in config/puma.rb: one outbox relay beside the requests, in Puma's only process or in the first
# worker of a cluster. It runs the relays that an initializer has started, or else one of its own on `acemq_outbox`.
Puma::Plugin.create do
  def config(dsl)
    AceMQ::Rails::PumaServing.one_relay
    # Puma 7 has the second name only.
    hook = dsl.respond_to?(:on_worker_boot) ? :on_worker_boot : :before_worker_boot
    dsl.public_send(hook) { |index| AceMQ::Rails::PumaServing.worker(index) }
  end
end
