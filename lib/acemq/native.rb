# frozen_string_literal: true

require_relative "../acemq_native/version"

# The compiled extension, required here and nowhere else.
begin
  require "acemq_native/acemq_native"
rescue LoadError => e
  raise LoadError,
        "acemq_native's compiled extension cannot be loaded (#{e.message}). In a checkout run `rake compile`; " \
        "an installed gem is repaired by `gem pristine acemq_native` (both need cargo, " \
        "https://www.rust-lang.org/tools/install)",
        cause: e
end
