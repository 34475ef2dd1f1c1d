# frozen_string_literal: true

require "openssl"
require "socket"
require "timeout"

RSpec.describe AceMQ::AMQP::Patterns::Relay::Blame do
  include AceMQ::SpecSupport::Records

  amqp = AceMQ::AMQP

  def blame(error, transport = Object.new)
    described_class.of(error, record("m-1"), transport)
  end

  {
    amqp::PublishError.new("no") => [:record, false],
    amqp::PublishError.new("no", unroutable: true) => [:record, false],
    amqp::PublishError.new("no", scope: :destination) => [:destination, false],
    amqp::PublishError.new("no", permanent: true) => [:record, true],
    amqp::ConfirmTimeout.new("no") => [:connection, false],
    amqp::PublishingPausedError.new("no") => [:connection, false],
    amqp::TransportError.new("no") => [:connection, false],
    Errno::ECONNREFUSED.new => [:connection, false],
    Errno::EPIPE.new => [:connection, false],
    EOFError.new => [:connection, false],
    IOError.new("closed stream") => [:connection, false],
    SocketError.new("unknown host") => [:connection, false],
    OpenSSL::SSL::SSLError.new("no") => [:connection, false],
    Timeout::Error.new => [:connection, false],
    RuntimeError.new("no") => [:record, false],
    ArgumentError.new("no") => [:record, false],
    amqp::EncodeError.new("no") => [:record, false]
  }.each do |error, (scope, permanent)|
    it "takes #{error.inspect} for the #{scope}'s" do
      expect(blame(error)).to have_attributes(scope: scope, permanent: permanent, error: error)
    end
  end

  it "asks the transport about errors of its own" do
    driver_error = Class.new(StandardError)
    transport = Object.new
    transport.define_singleton_method(:connection_error?) { |error| error.is_a?(driver_error) }

    expect(blame(driver_error.new, transport).scope).to eq :connection
    expect(blame(RuntimeError.new, transport).scope).to eq :record
  end

  it "takes an outcome without a scope for the connection's: nobody is charged on a guess" do
    expect(described_class.of_outcome(RuntimeError.new, record("m-1")).scope).to eq :connection
  end
end
