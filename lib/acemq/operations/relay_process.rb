# frozen_string_literal: true

require_relative "../operations"
require_relative "service_manager"

module AceMQ
  module Operations
    # A process that relays: starts its relays, says what changes, and does what signals tell it.
    #
    # | signal | what it does |
    # |---|---|
    # | INT, TERM | no more claims; ends when what is out is settled. A second one ends at once |
    # | TSTP | pauses: rows wait, connections stay |
    # | CONT | goes on |
    # | TTIN | writes the stack of every thread |
    class RelayProcess
      SIGNALS = %w[INT TERM TSTP CONT TTIN].freeze
      # Seconds between two looks at what the relays are doing.
      LOOK = 1.0
      # Seconds that stopping may take.
      CLOSE_WITHIN = 20
      # Seconds for a relay to notice that its time is up.
      GRACE = 1

      # @param relays [Hash{String => AMQP::Patterns::OutboxRelay}] by what to call them
      # @param say [#call] told each line of what happens
      # @param close_within [Numeric] seconds
      # @param probe [#start, #stop, nil] what answers over HTTP meanwhile
      # @param disconnect [#call, nil] told how many seconds are left, once the relays are closed
      # @param manager [ServiceManager]
      def initialize(relays, say:, close_within: CLOSE_WITHIN, probe: nil, disconnect: nil, manager: ServiceManager.new)
        @relays = relays
        @say = say
        @close_within = close_within
        @probe = probe
        @disconnect = disconnect
        @manager = manager
        @told = {}
      end

      # Until INT or TERM.
      #
      # @return [Boolean] whether everything was settled in time
      def run
        @reader, @writer = IO.pipe
        former = SIGNALS.to_h { |name| [name, Signal.trap(name) { @writer.write_nonblock("#{name}\n", exception: false) }] }
        start
        serve
        stop
      ensure
        former&.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
        [@reader, @writer].each { |io| io&.close }
      end

      private

      def start
        @probe&.start
        @relays.each_value(&:start)
        @say.call("publishing #{@relays.keys.join(", ")}, process #{Process.pid}")
        @manager.ready("publishing")
      end

      def serve
        loop do
          case next_signal
          when "INT", "TERM" then return
          when "TSTP" then pause
          when "CONT" then resume
          when "TTIN" then dump_threads
          end
          look
        end
      end

      def next_signal
        seconds = [LOOK, @manager.watchdog_interval].compact.min
        @reader.gets&.chomp if @reader.wait_readable(seconds)
      end

      # A relay whose thread is dead gives no sign of life for all of them.
      def look
        @manager.alive if @relays.each_value.all?(&:running?)
        @relays.each do |name, relay|
          state = relay.state
          seen = [interesting(state.name), state.reason]
          next if @told[name] == seen

          @told[name] = seen
          tell(name, *seen)
        end
      end

      # Between these two it changes many times a second.
      def interesting(state)
        %i[idle publishing].include?(state) ? :publishing : state
      end

      def tell(name, state, reason)
        text = [state, reason].compact.join(": ")
        @say.call("#{name} #{text}")
        @manager.status(text)
      end

      def pause
        @relays.each_value(&:pause)
      end

      def resume
        @relays.each_value(&:resume)
      end

      def dump_threads
        Thread.list.each do |thread|
          @say.call("thread #{thread.name || thread.object_id} #{thread.status}\n  #{(thread.backtrace || []).join("\n  ")}")
        end
      end

      def stop
        deadline = AMQP::Deadline.in(@close_within)
        @say.call("stopping: no more claims, at most #{@close_within} s for what is out")
        @manager.stopping
        patient = wait_for(closing(deadline))
        # Whoever closes them at the end of the process would begin to wait anew.
        AceMQ::Rails::Relays.release(@relays.values)
        @probe&.stop
        in_time = patient && @relays.each_value.none?(&:running?)
        @say.call(in_time ? "stopped" : "stopped before everything was settled: another relay takes it over within a lease")
        @disconnect&.call(patient ? deadline.left : 0)
        in_time
      end

      def closing(deadline)
        @relays.map { |_, relay| Thread.new { relay.close(timeout: deadline.left) } }
      end

      # @return [Boolean] false when told a second time
      def wait_for(threads)
        patience = AMQP::Deadline.in(@close_within + GRACE)
        until threads.none?(&:alive?) || patience.passed?
          return false if @reader.wait_readable(0.05) && %w[INT TERM].include?(@reader.gets&.chomp)

          @manager.alive
        end
        true
      end
    end
  end
end
