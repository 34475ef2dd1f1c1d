# frozen_string_literal: true

require "puma/plugin"
require_relative "../../acemq/rails/puma_serving"

# `plugin :acemq_relay` in config/puma.rb: one outbox relay beside the requests, in Puma's only process or in the first
# worker of a cluster. It runs the relays that an initializer has started, or else one of its own on `acemq_outbox`.
Puma::Plugin.create do
  def config(dsl)
    AceMQ::Rails::PumaServing.one_relay
    # A restart replaces the process without ending it. Puma 7 has the first name for it.
    hook = dsl.respond_to?(:before_restart) ? :before_restart : :on_restart
    dsl.public_send(hook) { AceMQ::Rails::PumaServing.end }
  end
end
