# frozen_string_literal: true

desc "Check Ruby and Rust for style and for mistakes"
task lint: %w[lint:ruby rust:clippy rust:fmt]

namespace :lint do
  desc "Check the Ruby code"
  task(:ruby) { sh "rubocop", "--format", "simple" }
end
