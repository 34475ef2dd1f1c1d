namespace :acemq do
  desc "Publish what the outbox holds, until interrupted"
  task relay: :environment do
    require "acemq/amqp/patterns"

    relay = AceMQ::AMQP::Patterns::OutboxRelay.new(
      AceMQ::Rails.connection, ActiveRecordOutboxStore.new, interval: 1
    ).start

    stopping = Thread::Queue.new
    %w[INT TERM].each { |signal| Signal.trap(signal) { stopping << signal } }
    stopping.pop

    relay.close
    AceMQ::Rails.disconnect!
  end
end
