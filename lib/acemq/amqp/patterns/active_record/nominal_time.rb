# frozen_string_literal: true

module AceMQ
  module AMQP
    module Patterns
      # Times in columns without a zone. ActiveRecord writes them in UTC or, where an application says so, in the
      # zone of its process; SQL and Ruby have to agree with it.
      #
      # @api private
      module NominalTime
        class << self
          # @return [Integer] seconds that a column's "now" is ahead of UTC
          def offset
            local? ? Time.now.utc_offset : 0
          end

          # @return [Boolean]
          def local?
            setting = ::ActiveRecord.respond_to?(:default_timezone) ? ::ActiveRecord : ::ActiveRecord::Base
            setting.default_timezone == :local
          end

          # @param time [Time]
          # @return [String] as ActiveRecord would write it, with microseconds
          def format(time)
            (local? ? time.getlocal : time.getutc).strftime("%Y-%m-%d %H:%M:%S.%6N")
          end

          # @param microseconds [Integer] since 1970, of a clock that shows what the column shows
          # @return [Time] UTC
          def at(microseconds)
            shown = Time.at(0, microseconds, :usec).utc
            return shown unless local?

            Time.local(shown.year, shown.month, shown.day, shown.hour, shown.min, shown.sec, shown.usec).utc
          end
        end
      end
    end
  end
end
