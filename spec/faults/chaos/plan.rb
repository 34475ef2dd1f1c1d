# frozen_string_literal: true

module AceMQ
  module Chaos
    # What one episode is to be: everything that chance decides, decided before it begins, from seed and number.
    class Plan
      # No failpoint: the fault comes at a moment that the clock chooses.
      ANY_MOMENT = "any"
      FAILPOINTS = [ANY_MOMENT, "before_claim", "mid_claim", "after_claim", "after_publish", "after_confirm", "mid_mark"].freeze

      RELAY = %w[relay.kill relay.pause relay.nap relay.term relay.raise].freeze
      LINK = %w[link.cut link.reset link.stall link.half_close link.delay link.refuse].freeze
      BROKER = %w[broker.pause broker.alarm broker.close broker.restart broker.kill].freeze
      DATABASE = %w[database.sessions database.restart database.kill database.read_only database.lock].freeze
      FAULTS = (RELAY + LINK + BROKER + DATABASE).freeze

      # What takes no server away that others may be using.
      GENTLE = (RELAY + LINK + %w[database.sessions database.lock]).freeze

      # Most relays run with the first one.
      ORDERINGS = %i[destination destination none strict].freeze

      # One field of the matrix.
      Cell = Struct.new(:failpoint, :database, :fault) do
        # Nothing raises at any moment, and PostgreSQL claims in one statement.
        def possible?
          !(fault == "relay.raise" && failpoint == ANY_MOMENT) && !(failpoint == "mid_claim" && database == "postgres")
        end
      end

      class << self
        # @return [Array<Cell>] that can be tried
        # @param possible [Hash{String => Array<String>}] faults by database
        def cells(possible, failpoints)
          possible.flat_map do |database, faults|
            failpoints.product(faults).map { |failpoint, fault| Cell.new(failpoint, database, fault) }.select(&:possible?)
          end
        end

        # @param cells [Array<Cell>]
        # @return [Enumerator<Plan>] without end: every cell once, in an order that the seed decides, then again
        def sequence(seed, cells)
          Enumerator.new do |plans|
            random = Random.new(seed)
            number = 0
            loop { cells.shuffle(random: random).each { |cell| plans << new(number += 1, cell, seed) } }
          end
        end
      end

      attr_reader :number, :cell, :random, :relays, :batch, :in_flight, :passage, :pace, :ordering

      # @param number [Integer] of the episode, from 1
      def initialize(number, cell, seed)
        @number = number
        @cell = cell
        @random = Random.new((seed * 1_000_003) + number)
        @relays = @random.rand(1..2)
        @batch = [20, 50, 100].sample(random: @random)
        @in_flight = [@batch, @batch, 10, 1].sample(random: @random)
        @passage = @random.rand(2..5)
        @pace = @random.rand(0.02..0.06)
        @switches = %i[quorum variant missing poison late_first].to_h { |name| [name, @random.rand < 0.5] }
        @ordering = ORDERINGS.sample(random: @random)
        be_strict if ordering == :strict
      end

      def failpoint
        cell.failpoint
      end

      def database
        cell.database
      end

      def fault
        cell.fault
      end

      # Queues are quorum queues; the database is set up the second way; the late lane lacks its exchange and not only
      # its binding; there are rows that cannot be sent; the late lane is bound before the fault and not after it.
      %i[quorum variant missing poison late_first].each do |name|
        define_method(:"#{name}?") { @switches.fetch(name) }
      end

      # @return [String, nil] for ACEMQ_FAILPOINTS
      def failpoints
        return if failpoint == ANY_MOMENT

        "#{failpoint}=#{fault == "relay.raise" ? "raise" : "stop"}##{passage}"
      end

      # @return [String]
      def to_s
        with = ["#{relays} relay#{"s" if relays > 1}", "batch #{batch}", "in flight #{in_flight}", ordering,
                *@switches.select { |_, on| on }.keys]
        "##{number} #{database}, #{failpoint}, #{fault} (#{with.join(", ")})"
      end

      private

      # One message that cannot be delivered stops everything, so that must not take long.
      def be_strict
        @in_flight = 1
        @switches[:late_first] = true
      end
    end
  end
end
