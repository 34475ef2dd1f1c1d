# frozen_string_literal: true

require_relative "../acemq_native/version"

# The compiled extension, required here and nowhere else.
#
# A received message whose headers are nested a thousand deep would overflow the usual stack of a native thread, and
# end the process, at every redelivery. Rust's standard library reads the size once, when the extension is loaded.
inherited_stack = ENV.fetch("RUST_MIN_STACK", nil)
begin
  ENV["RUST_MIN_STACK"] = (64 * 1024 * 1024).to_s
  require "acemq_native/acemq_native"
rescue LoadError => e
  raise LoadError,
        "acemq_native's compiled extension cannot be loaded (#{e.message}). In a checkout run `rake compile`; " \
        "an installed gem is repaired by `gem pristine acemq_native` (both need cargo, " \
        "https://www.rust-lang.org/tools/install)",
        cause: e
ensure
  ENV["RUST_MIN_STACK"] = inherited_stack
end
