# frozen_string_literal: true

# For commands that are to run in a process where everything is connected already.
