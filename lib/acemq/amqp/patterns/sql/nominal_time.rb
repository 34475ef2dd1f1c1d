# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Times in columns without a zone. ActiveRecord writes them in UTC or, where an application says so, in the
      # zone of its process; SQL and Ruby have to agree with it.
      #
      # @api private
      class NominalTime
        # @return [NominalTime] as ActiveRecord is set up now; UTC without it
        def self.current
          return new(false) unless defined?(::ActiveRecord::Base)

          setting = ::ActiveRecord.respond_to?(:default_timezone) ? ::ActiveRecord : ::ActiveRecord::Base
          new(setting.default_timezone == :local)
        end

        # @param microseconds [Integer] since 1970
        # @return [Time] UTC
        def self.utc(microseconds)
          Time.at(microseconds / 1_000_000, microseconds % 1_000_000, :usec).utc
        end

        # @param local [Boolean] whether columns show the zone of the process
        def initialize(local)
          @local = local
        end

        # @return [Boolean] whether the same time is shown twice when clocks go back
        def local?
          @local
        end

        # @return [Integer] seconds that a column's "now" is ahead of UTC
        def offset
          @local ? Time.now.utc_offset : 0
        end

        # @param time [Time]
        # @return [String] as ActiveRecord would write it, with microseconds
        def format(time)
          (@local ? time.getlocal : time.getutc).strftime("%Y-%m-%d %H:%M:%S.%6N")
        end

        # @param microseconds [Integer] since 1970, of a clock that shows what the column shows
        # @return [Time] UTC
        def at(microseconds)
          shown = NominalTime.utc(microseconds)
          return shown unless @local

          Time.local(shown.year, shown.month, shown.day, shown.hour, shown.min, shown.sec, shown.usec).utc
        end
      end
    end
  end
end
