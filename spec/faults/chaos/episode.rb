# frozen_string_literal: true

require "fileutils"
require_relative "faults"
require_relative "ledger"
require_relative "relay_process"
require_relative "waiting"

module AceMQ
  module Chaos
    # A few seconds of writing and relaying in which one thing goes wrong, and what the ledger says of it.
    class Episode
      LEASE = 4.0 # seconds
      CONFIRM_TIMEOUT = 1.5
      INTERVAL = 0.2
      MAX_ATTEMPTS = 10
      CLOSE_WITHIN = 8
      # Seconds that a relay may stand still without another taking over what it holds.
      STANDSTILL = 3.2
      # On top of lease and interval, for a machine that has other things to do.
      TOLERANCE = 3.0
      # Seconds until relays must have started, until one should have reached its failpoint, and until everything must
      # be out in the end.
      TO_START = 30.0
      TO_REACH = 6.0
      TO_FINISH = 40.0
      LOOK = 0.1
      # Rows that wait; with more of them writers pause, since everything has to be read back from the queues.
      BACKLOG = 500

      # Offenders that are described in full.
      EVIDENCE = 20

      attr_reader :plan, :database, :broker, :victim

      # @param plan [Plan]
      # @param database [Database]
      # @param writer [WriterProcess]
      # @param broker [Broker]
      # @param folder [String] for the logs of relays
      # @param relay [Hash] more keywords for them
      def initialize(plan, database:, writer:, broker:, folder:, relay: {})
        @plan = plan
        @relay_options = relay
        @database = database
        @writer = writer
        @broker = broker
        @folder = folder
        @counts = { deaths: 0, overruns: 0, ends: 0 }
        @waiting = Waiting.new(LEASE + INTERVAL + TOLERANCE, ordering: plan.ordering)
        @misdeeds = []
        @relays = []
      end

      # @return [Boolean] whether the victim reached its failpoint
      attr_reader :reached

      # @return [Judgement]
      def run
        prepare
        let_things_go_wrong
        finish
        judge
      ensure
        restore
      end

      # Looks on.
      #
      # @param seconds [Numeric]
      def hold(seconds)
        deadline = clock + seconds
        until clock > deadline
          look
          sleep LOOK
        end
      end

      # Looks on while something takes its time.
      def meanwhile(&block)
        working = Thread.new(&block)
        working.report_on_exception = false # it is raised here
        look until working.join(LOOK)
        working.value
      end

      # @param what [Symbol] :deaths (a relay's whole batch may be repeated), :overruns (a lease was lost, other than by a
      #   relay that stood still)
      def count(what)
        @counts[what] += 1
      end

      # What watches over a relay starts it again.
      def replace_victim
        @victim = new_relay("heir").go
      end

      # @param relay [RelayProcess] that was sent SIGTERM
      def expect_end(relay)
        @counts[:ends] += 1
        relay.wait(CLOSE_WITHIN + TOLERANCE)
        @misdeeds.concat(relay.misdeeds_at_end)
        held = database.glimpse(&:leased) if plan.relays == 1
        @misdeeds << "#{relay.name} ended in good order and left #{held} rows leased" if held&.positive?
      end

      private

      def prepare
        FileUtils.mkdir_p(@folder)
        @away = true
        prepare_relays # which takes them a while
        prepare_places
        @writer.write(@lanes.keys, seed: plan.random.rand(1_000_000), pace: plan.pace)
        @relays.each(&:go)
        await_start(@relays)
        @away = false
        hold(plan.random.rand(0.3..1.0))
      end

      def await_start(relays)
        await(TO_START) { relays.all?(&:started?) || !relays.all?(&:running?) }
        raise "a relay did not start; see #{@folder}" unless relays.all?(&:started?)
      end

      def prepare_relays
        @victim = new_relay("victim", plan.failpoints)
        new_relay("bystander") if plan.relays == 2
      end

      def prepare_places
        database.connect
        database.prepare(variant: plan.variant?)
        @lanes = broker.prepare(quorum: plan.quorum?, missing: plan.missing?, nacking: plan.ordering != :strict)
        @ledger = Ledger.new(lanes: @lanes, max_attempts: MAX_ATTEMPTS, ordering: plan.ordering)
        @ended_before = broker.proxy.ended
        @poison = plan.poison? ? add_poison : []
      end

      # Some good lane has two rows that can never be sent, the first in front of everything.
      def add_poison
        lane = @lanes.key(:good)
        Array.new(2) { |i| "poison-#{i}".tap { |id| database.add_poison(id, lane) } }
      end

      def new_relay(name, failpoints = nil)
        settings = {
          database: database.config, url: broker.url, close_within: CLOSE_WITHIN,
          store: { lease: LEASE, max_attempts: MAX_ATTEMPTS },
          relay: { interval: INTERVAL, batch: plan.batch, in_flight: plan.in_flight, confirm_timeout: CONFIRM_TIMEOUT,
                   ordering: plan.ordering, **@relay_options }
        }
        RelayProcess.new(name, settings, folder: @folder, failpoints: failpoints).tap { |relay| @relays << relay }
      end

      def let_things_go_wrong
        broker.bind_late if plan.late_first?
        @reached = reach_failpoint
        @away = plan.fault.match?(Faults::AWAY) || plan.relays == 1 || plan.database == "sqlite"
        Faults.new(self).inflict(plan.fault)
        @away = false
        note_recovery_from_now
        take_stock
        hold(plan.random.rand(0.5..1.5))
        broker.bind_late unless plan.late_first?
      end

      def reach_failpoint
        return hold(plan.random.rand(0.2..1.5)) if plan.failpoints.nil?

        await(TO_REACH) { plan.fault == "relay.raise" ? raised? : victim.stopped? }
      end

      def raised?
        victim.errors.any? { |message| message.include?("failpoint #{plan.failpoint}") }
      end

      # Until everything that can go out is out, and for as long as that may take.
      def finish
        @writer.halt or @misdeeds << "the writers did not come to a halt"
        await(TO_FINISH) do
          broker.drain { |ids| @ledger.take(ids) } # makes room where a queue is full
          look&.empty?
        end
        @ends = broker.proxy.ended - @ended_before
        close_relays
      end

      def close_relays
        left = @relays.select(&:running?)
        await_start(left) # one that is still loading knows no SIGTERM
        left.each(&:terminate)
        left.each do |relay|
          relay.wait(CLOSE_WITHIN + TOLERANCE)
          @misdeeds.concat(relay.misdeeds_at_end)
        end
        gone = @relays.reject { |relay| relay.status && (relay.status.success? || relay.status.termsig == 9) }
        @misdeeds.concat(gone.map { |relay| "#{relay.name} ended by itself: #{relay.status}" })
      end

      # Marks first, then the queues, then the question whether every mark is in the ledger.
      def take_stock
        marked = database.glimpse(&:marked) or return
        broker.drain { |ids| @ledger.take(ids) }
        @ledger.check_marked(marked)
      end

      def judge
        take_stock
        work = database.work
        judgement = @ledger.judge(work: work, acknowledged: @writer.acknowledged, rows: database.rows, poison: @poison,
                                  repeats_allowed: repeats_allowed)
        judgement.stuck = @waiting.stuck
        judgement.misdeeds = (@misdeeds + defects).uniq
        judgement.recovery = @recovery
        keep_evidence(judgement, work) unless judgement.ok?
        judgement
      end

      def keep_evidence(judgement, work)
        File.open(File.join(@folder, "evidence.txt"), "w") do |file|
          file.puts plan, *judgement.complaints, @counts, "connections ended: #{@ends}"
          file.puts "stood still for #{@relays.map { |relay| relay.longest_stop.round(1) }.join(", ")} s", ""
          database.described(judgement.offenders.first(EVIDENCE)).each { |row| file.puts row }
          @ledger.lanes_of(judgement.offenders, work).each { |lane, numbers| file.puts "", lane.inspect, numbers.join(" ") }
        end
      end

      # The formula of the README, with one more for what a database that is away makes another relay take over.
      def repeats_allowed
        losses = [@ends - @counts[:deaths] - @counts[:ends], 0].max
        standstills = @relays.count { |relay| relay.longest_stop > STANDSTILL }
        (plan.batch * (@counts[:deaths] + @counts[:overruns] + standstills)) + (plan.in_flight * losses)
      end

      def defects
        return [] if plan.fault == "relay.raise" && plan.failpoint == "after_publish"

        @relays.flat_map(&:errors).grep(/a defect in acemq_native/)
      end

      # @return [Array, nil] what waits
      def look
        rows = database.glimpse { |db| db.waiting(MAX_ATTEMPTS) }
        @writer.tell(pause: rows.size > BACKLOG) if rows
        return @waiting.excuse if @away
        return if rows.nil?

        @waiting.look(rows, clock)
        see_recovery(rows)
        rows
      end

      def note_recovery_from_now
        @healed_at = clock
        @were_waiting = good(database.glimpse { |db| db.waiting(MAX_ATTEMPTS) } || [])
      end

      def see_recovery(rows)
        return if @healed_at.nil? || @recovery

        @recovery = clock - @healed_at if (@were_waiting & good(rows)).empty?
      end

      def good(rows)
        rows.select { |_, lane, _| @lanes[lane] == :good }.map(&:first)
      end

      def await(seconds)
        deadline = clock + seconds
        until (found = yield)
          return false if clock > deadline

          look
          sleep LOOK
        end
        found
      end

      # Whatever happened, the next episode begins with everything in its place.
      def restore
        @relays.each { |relay| relay.kill if relay.running? }
        broker.proxy.resume
        database.disconnect
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
