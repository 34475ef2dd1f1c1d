# frozen_string_literal: true

require_relative "../database_failure"
require_relative "finding"

module AceMQ
  module Operations
    class Doctor
      # Why a database could not be asked about something.
      class Refusal
        REACH = "see whether it runs, and what config/database.yml says of host, port, user and password"
        PERMIT = "see what config/database.yml says of database and user, and what this user is granted: a relay selects and updates " \
                 "rows, the application inserts them, a purge deletes them"

        # @param subject [String] what was to be looked at
        # @param error [ActiveRecord::ActiveRecordError]
        def initialize(subject, error)
          @subject = subject
          @failure = DatabaseFailure.new(error)
        end

        # @return [Boolean] whether the database is away, and there is nothing to be asked at all
        def away?
          @failure.away?
        end

        # @return [Finding]
        def finding
          return Finding.error("database", "does not answer: #{@failure.message}", REACH) if away?

          Finding.error(@subject, "cannot be looked at: #{@failure}", PERMIT)
        end
      end
    end
  end
end
