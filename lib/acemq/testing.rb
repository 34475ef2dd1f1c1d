# frozen_string_literal: true

require_relative "amqp"
require_relative "testing/fake_transport"

module AceMQ
  # For an application's own specs; loaded by `require "acemq/testing"` only.
  #
  # @example
  #   AceMQ::Rails.connection = AceMQ::AMQP::Connection.new(transport: AceMQ::Testing::FakeTransport.new)
  module Testing
  end
end
