# frozen_string_literal: true

namespace :rust do
  desc "Test the Rust core; needs no Ruby"
  task(:test) { sh "cargo", "test", "--locked", "--quiet" }

  # The extension has no Rust tests of its own; it is checked here and tested by the specs.
  desc "Lint the Rust code, warnings are errors"
  task(:clippy) { sh(*%w[cargo clippy --locked --quiet --workspace --all-targets -- -D warnings]) }

  desc "Check the layout of the Rust code"
  task(:fmt) { sh "cargo", "fmt", "--all", "--check" }
end
