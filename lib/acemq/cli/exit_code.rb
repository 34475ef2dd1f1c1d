# frozen_string_literal: true

module AceMQ
  module CLI
    # How a command ends, by the names of sysexits.h where it has one.
    module ExitCode
      # Done; of `doctor`: nothing that must be mended.
      OK = 0
      # `doctor` found something to mend; `retry` did not find what it was told to bring back.
      FOUND = 1
      # A command or an option that does not exist.
      USAGE = 64
      # The database or the broker does not answer, or refuses.
      UNAVAILABLE = 69
      # A fault of this program, or of the application that it loaded.
      SOFTWARE = 70
      # Not everything was done in time: `drain` left rows, `relay` was stopped before its batch was settled.
      UNFINISHED = 75
      # A table or a setting is missing; the application cannot be loaded; Thor is not installed.
      CONFIGURATION = 78
      # Ctrl-C.
      INTERRUPTED = 130
    end
  end
end
