# frozen_string_literal: true

require_relative "mandatory"
require_relative "error_callback"

module AceMQ
  module AMQP
    module Patterns
      module Relay
        # The relay's keywords, checked against each other and against what the store can do.
        class Options
          BATCHES = (1..10_000)
          ORDERINGS = %i[destination strict none].freeze
          ON_RETIRE = %i[continue hold].freeze

          # @return [Object] the application's store
          attr_reader :store

          attr_reader :interval, :batch, :in_flight, :in_flight_bytes, :confirm_timeout, :ordering, :mandatory,
                      :on_retire, :on_error

          # @param store [Object] asked whether it can claim, and for its lease
          # @raise [ArgumentError] naming the keyword, what it was and what it may be
          def initialize(store, interval:, batch:, in_flight:, in_flight_bytes:, confirm_timeout:, ordering:,
                         mandatory:, on_retire:, on_error:)
            @store = store
            @interval = seconds(:interval, interval)
            @batch = whole(:batch, batch, BATCHES)
            @confirm_timeout = under_lease(seconds(:confirm_timeout, confirm_timeout))
            @ordering = ordering_of(ordering)
            @in_flight = in_flight.nil? ? default_in_flight : whole(:in_flight, in_flight, BATCHES)
            @in_flight_bytes = whole(:in_flight_bytes, in_flight_bytes, 1..)
            @mandatory = Mandatory.new(mandatory)
            @on_retire = on_retire_of(on_retire)
            @on_error = ErrorCallback.new(on_error)
            freeze
          end

          # @return [Boolean] whether the store leases rows under a claim that can be renewed and released
          def claims?
            @store.respond_to?(:claim)
          end

          private

          def seconds(name, value)
            return value if value.is_a?(Numeric) && value.real? && value.finite? && value.positive?

            raise ArgumentError, "#{name}: must be seconds, more than 0, not #{value.inspect}"
          end

          def whole(name, value, range)
            return value if value.is_a?(Integer) && range.cover?(value)

            upto = range.end ? "from #{range.begin} to #{range.end}" : "of at least #{range.begin}"
            raise ArgumentError, "#{name}: must be an Integer #{upto}, not #{value.inspect}"
          end

          def one_of(name, value, allowed)
            return value if allowed.include?(value)

            raise ArgumentError, "#{name}: must be #{allowed.map(&:inspect).join(" or ")}, not #{value.inspect}"
          end

          # A confirm that may take longer than the lease lets another relay publish the same rows meanwhile.
          def under_lease(timeout)
            lease = @store.lease if @store.respond_to?(:lease)
            return timeout unless lease.is_a?(Numeric) && timeout >= lease

            raise ArgumentError, "confirm_timeout: #{timeout} s must be less than the store's lease of #{lease} s: " \
                                 "lower it, or give the store a longer lease:"
          end

          def ordering_of(ordering)
            return claims? ? :destination : :strict if ordering.nil?

            one_of(:ordering, ordering, ORDERINGS)
            return ordering if claims? || ordering == :strict

            raise ArgumentError, "ordering: #{ordering.inspect} needs a store that can hold a destination, and " \
                                 "#{@store.class} does not answer claim: leave ordering: out, or use :strict"
          end

          def on_retire_of(on_retire)
            one_of(:on_retire, on_retire, ON_RETIRE)
            return on_retire if claims? || on_retire == :continue

            raise ArgumentError, "on_retire: :hold needs a store that can hold a destination, and #{@store.class} " \
                                 "does not answer claim: leave on_retire: out"
          end

          # With one message on its way nothing can overtake the one that fails.
          def default_in_flight
            ordering == :strict ? 1 : batch
          end
        end
      end
    end
  end
end
