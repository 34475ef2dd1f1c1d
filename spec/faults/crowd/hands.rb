# frozen_string_literal: true

# A crowd at one outbox, each in a process of its own: writers, a purger, and relays of which one is killed every now and
# then and replaced. For so many seconds; then the writers stop, and the relays finish.
#
# Settings come as JSON in CHAOS: `seconds`, `database`, `folder`, `relays`, `writers`, `limit`, `lease`. In the folder, a line
# each: `written` has what was committed, `published` what relays would have sent while they held its lease, `errors` what
# was raised. Ends with its input, too.

require "active_record"
require "acemq_native"
require "json"
require "securerandom"

# What all of them share, decided before anybody is forked.
module Crowd
  SETTINGS = JSON.parse(ENV.fetch("CHAOS"), symbolize_names: true).freeze
  STORE = AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
  DESTINATIONS = 24

  class << self
    def halted?
      @halted ? true : false
    end

    # @return [Integer] process id
    def hand(name)
      fork do
        Signal.trap("TERM") { @halted = true }
        ActiveRecord::Base.establish_connection(SETTINGS[:database])
        yield
      rescue StandardError => e
        note("errors", "#{name}: #{e.class}: #{e.message.lines.first}")
      ensure
        exit!(0)
      end
    end

    # One write: whole or not at all, and in the order of all processes.
    def note(file, *lines)
      File.open(File.join(SETTINGS[:folder], file), "a") { |io| io.syswrite(lines.map { |line| "#{line.chomp}\n" }.join) }
    end
  end
end

# One destination has one writer, so its numbers are in the order of its commits.
class Writer
  def initialize(index)
    @destinations = (0...Crowd::DESTINATIONS).select { |d| d % Crowd::SETTINGS[:writers] == index }
    @numbers = Hash.new(0)
    @store = Crowd::STORE.new
  end

  def run
    write until Crowd.halted?
  end

  private

  def write
    added = ActiveRecord::Base.transaction { Array.new(rand(1..8)) { add(@destinations.sample) } }
    Crowd.note("written", *added)
    sleep rand(0.0..0.02)
  end

  def add(destination)
    n = @numbers[destination] += 1
    @store.add(AceMQ::AMQP::Patterns::OutboxRecord.new(id: SecureRandom.uuid, exchange: "e", routing_key: "d#{destination}",
                                                       body: n.to_s, content_type: "text/plain", headers: {}))
    "d#{destination} #{n}"
  end
end

# Claims, publishes on paper, and settles; some heads fail, and what follows them is given back.
class Relay
  FAILING = 0.1

  def initialize
    @store = Crowd::STORE.new(lease: Crowd::SETTINGS[:lease])
  end

  def run
    loop do
      claim = @store.claim(Crowd::SETTINGS[:limit])
      next settle(claim) unless claim.empty?
      break if Crowd.halted? && @store.pending_count.zero?

      sleep 0.01
    end
  end

  private

  def settle(claim)
    Crowd.note("errors", "a claim of #{claim.records.size}") if claim.records.size > Crowd::SETTINGS[:limit]
    sent, held, unsent = publish(claim.records)
    Crowd.note("published", *sent.map { |record| "#{record.routing_key} #{record.body}" }) if sent.any?
    sleep rand(0.0..0.01)
    claim.settle(confirmed: sent.map(&:id), held: held.map { |record| [record.id, "no"] }, unsent: unsent.map(&:id))
  end

  # @return [Array<Array>]
  def publish(records)
    records.group_by(&:routing_key).values.map do |lane|
      out = rand < FAILING ? rand(0...lane.size) : lane.size
      [lane.first(out), lane[out, 1], lane.drop(out + 1)]
    end.transpose.map(&:flatten)
  end
end

# Held rows come back soon.
AceMQ::AMQP::Patterns::Backoff.define_singleton_method(:seconds) { |*| rand(0.01..0.1) }

def purge
  store = Crowd::STORE.new
  until Crowd.halted?
    store.purge_published(0.5, batch: 100)
    sleep 0.1
  end
end

def new_relay
  Crowd.hand("relay") { Relay.new.run }
end

def clock
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def finish(hands)
  Process.kill(:TERM, *hands)
  hands.each { |pid| Process.wait(pid) }
end

# What is loaded at the first use of a database is loaded once, and not by everybody.
ActiveRecord::Base.establish_connection(Crowd::SETTINGS[:database])
Crowd::STORE.new.claim(1)
ActiveRecord::Base.remove_connection

writers = Array.new(Crowd::SETTINGS[:writers]) { |i| Crowd.hand("writer") { Writer.new(i).run } }
purger = Crowd.hand("purger") { purge }
relays = Array.new(Crowd::SETTINGS[:relays]) { new_relay }

deadline = clock + Crowd::SETTINGS[:seconds]
until clock > deadline || $stdin.wait_readable(rand(0.2..0.6))
  victim = rand(relays.size)
  Process.kill(:KILL, relays[victim])
  Process.wait(relays[victim])
  relays[victim] = new_relay
end
finish([*writers, purger])
finish(relays)
