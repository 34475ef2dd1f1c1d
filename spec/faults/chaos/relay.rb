# frozen_string_literal: true

# A relay in a process of its own, in the foreground: from the first line of its input until SIGTERM or the input's end.
# What it has to say goes to its output, a line of JSON each. Settings come as JSON in CHAOS: `database`, `url`, `name`,
# `store`, `relay`, `close_within`.

require "active_record"
require "acemq_native"
require "json"

settings = JSON.parse(ENV.fetch("CHAOS"), symbolize_names: true)

say = lambda do |event, **facts|
  line = JSON.generate(at: Time.now.round(3).iso8601(3), event: event, **facts)
  $stdout.write("#{line}\n")
  $stdout.flush
end

ActiveRecord::Base.establish_connection(settings[:database])
store = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new(**settings[:store])
connection = AceMQ::AMQP::Connection.lazy(settings[:url], connection_timeout: 3, client_name: settings[:name])
on_error = lambda do |error, exchange:, routing_key:|
  say.call("error", error: error.class.name, message: error.message, exchange: exchange, routing_key: routing_key)
end
keywords = settings[:relay].merge(ordering: settings.dig(:relay, :ordering)&.to_sym)
relay = AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store, **keywords, on_error: on_error)
$stdin.gets or exit
relay.start
say.call("started", pid: Process.pid)

stopping = Thread::Queue.new
Signal.trap("TERM") { stopping << "TERM" }
Thread.new do
  $stdin.read
  stopping << "end of input"
end
why = stopping.pop

say.call("stopping", why: why, running: relay.running?, state: relay.state.name, reason: relay.state.reason)
connection.close(timeout: settings[:close_within])
say.call("stopped", state: relay.state.name)
