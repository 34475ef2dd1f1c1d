# frozen_string_literal: true

require "json"
require "timeout"

# What the extension holds of Ruby, the collector may move or take at any allocation: it must hold nothing.
#
# In a process of its own with a small heap: under stress every allocation walks all of it.
RSpec.describe AceMQ::AMQP::Transport, "under a collector that never rests" do
  script = <<~'RUBY'
    require "json"
    require "acemq/amqp"
    require "acemq/amqp/patterns"
    url, queue, seconds = ARGV
    transport = AceMQ::AMQP::Transport.open(url)
    store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
    message = lambda do |key, i|
      { exchange: "", routing_key: key, body: "body #{i}", content_type: "text/plain", mandatory: true,
        headers: { "n" => i, "list" => ["a", { "b" => nil }], "text" => "é" * 10 } }
    end
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds.to_f
    GC.auto_compact = true if GC.respond_to?(:auto_compact=)
    GC.stress = true
    outcomes = []
    claims = []
    loop do
      threads = Array.new(3) do |t|
        Thread.new do
          transport.publish_all(Array.new(4) { |i| message.call(queue, t * 10 + i) } +
                                [message.call("nobody.home", 0), message.call("k" * 256, 1)])
        end
      end
      outcomes.concat(threads.flat_map(&:value))
      claims.concat(Array.new(6) { |i| store.claim("key #{i % 3}") })
      break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
    end
    taken = Array.new(2) { transport.pull(queue).tap(&:ack).headers["list"] }
    GC.stress = false
    puts JSON.generate(confirmed: outcomes.grep(String).size, taken: taken, rounds: outcomes.size / 18,
                       failed: outcomes.grep(Exception).map(&:scope).tally, claims: claims.first(6).tally)
    transport.close
  RUBY

  def run(script, queue, seconds)
    library = File.expand_path("../../../../lib", __dir__)
    child = IO.popen([RbConfig.ruby, "-I", library, "-e", script, broker.url, queue, seconds.to_s])
    JSON.parse(Timeout.timeout(seconds + 600) { child.read })
  rescue Timeout::Error
    Process.kill("KILL", child.pid)
    raise
  end

  [[0, {}], [60, { long: true }]].each do |seconds, tags|
    it "publishes, fails, claims and reads for #{seconds} s and at least once", **tags do
      connection = open_connection
      queue = new_queue(connection)
      told = run(script, queue, seconds)
      rounds = told["rounds"]

      expect(rounds).to be_positive
      expect(told).to include("confirmed" => 12 * rounds, "failed" => { "destination" => 3 * rounds, "record" => 3 * rounds },
                              "claims" => { "claimed" => 3, "in_progress" => 3 }, "taken" => [["a", { "b" => nil }]] * 2)
      expect(connection.message_count(queue)).to eq((12 * rounds) - 2)
    end
  end
end
