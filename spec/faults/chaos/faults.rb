# frozen_string_literal: true

module AceMQ
  module Chaos
    # How each thing dies or breaks, and comes back. By the time it is called the victim may have stopped at a
    # failpoint; it goes on, if it does, once the harm is done.
    class Faults
      # Those under which nothing can be claimed or sent, so that nothing is blamed for waiting.
      AWAY = /\A(?:broker|link|database)/

      # @param episode [Episode]
      def initialize(episode)
        @episode = episode
        @broker = episode.broker
        @database = episode.database
        @random = episode.plan.random
      end

      # @param name [String] "relay.kill"
      def inflict(name)
        send(name.tr(".", "_"))
      end

      private

      def victim
        @episode.victim
      end

      def hold(range)
        @episode.hold(@random.rand(range))
      end

      # -- the relay

      def relay_kill
        @episode.count(:deaths)
        victim.kill
        @episode.replace_victim
      end

      # For longer than its lease: what it held is taken over, if there is somebody to do it.
      def relay_pause
        victim.stop
        hold(Episode::LEASE + 0.5..Episode::LEASE + 1.5)
        victim.continue
      end

      # For longer than it waits for a confirm, and not for as long as its lease.
      def relay_nap
        victim.stop
        hold(Episode::CONFIRM_TIMEOUT + 0.2..Episode::LEASE - 1.0)
        victim.continue
      end

      def relay_term
        victim.terminate
        @episode.expect_end(victim)
        @episode.replace_victim
      end

      # It has raised by itself.
      def relay_raise
        @episode.count(:deaths) if @episode.plan.failpoint == "after_publish"
        hold(0.2..0.5)
      end

      # -- the way to the broker

      def link_cut
        @broker.proxy.cut
        victim.continue
      end

      def link_reset
        @broker.proxy.reset
        victim.continue
      end

      def link_half_close
        @broker.proxy.half_close(%i[client server].sample(random: @random))
        victim.continue
      end

      def link_stall
        @broker.proxy.stall(%i[up down both].sample(random: @random))
        victim.continue
        hold(1.0..5.0)
        @broker.proxy.resume
      end

      def link_delay
        @broker.proxy.delay(@random.rand(0.05..0.4))
        victim.continue
        hold(1.0..3.0)
        @broker.proxy.resume
      end

      def link_refuse
        @broker.proxy.refuse
        victim.continue
        hold(1.0..4.0)
        @broker.proxy.resume
      end

      # -- the broker

      def broker_pause
        @broker.pause
        victim.continue
        hold(1.0..5.0)
        @broker.resume
      end

      def broker_alarm
        @episode.meanwhile { @broker.alarm(true) }
        victim.continue
        hold(1.0..4.0)
        @episode.meanwhile { @broker.alarm(false) }
      end

      def broker_close
        @episode.meanwhile { @broker.close_connections }
        victim.continue
      end

      def broker_restart
        @episode.meanwhile { @broker.stop }
        victim.continue
        hold(0.5..2.0)
        @episode.meanwhile { @broker.start }
      end

      def broker_kill
        @broker.kill
        victim.continue
        hold(0.1..1.0)
        @episode.meanwhile { @broker.start }
      end

      # -- the database

      def database_sessions
        @database.kill_sessions
        victim.continue
      end

      def database_restart
        outlast_lease
        @database.restart { while_away(0.2..6.0) }
      end

      def database_kill
        outlast_lease
        @database.crash { while_away(0.1..2.0) }
      end

      def database_read_only
        outlast_lease
        @database.read_only { while_away(0.5..5.0) }
      end

      def database_lock
        outlast_lease
        @database.lock { while_away(0.5..7.0) }
      end

      def while_away(range)
        victim.continue
        hold(range)
      end

      # What was confirmed cannot be marked meanwhile, and when the database is back another relay may be the first.
      def outlast_lease
        @episode.plan.relays.times { @episode.count(:overruns) }
      end
    end
  end
end
