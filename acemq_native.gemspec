# frozen_string_literal: true

require_relative "lib/acemq_native/version"

Gem::Specification.new do |spec|
  spec.name = "acemq_native"
  spec.version = AceMQ::Native::VERSION
  spec.authors = ["The acemq_native authors"]
  spec.summary = "Transactional outbox and idempotent consumers for RabbitMQ, with a native core"
  spec.description = <<~TEXT
    A Rails application writes a message as a row in the transaction that does the work; a relay publishes committed
    rows to RabbitMQ and marks each one only after the broker has confirmed it; a consumer that is handed the same
    message twice does the work once. The publishing core is written in Rust.
  TEXT
  spec.license = "Apache-2.0"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # Cargo reads every manifest of the workspace, and a manifest that names a missing file does not parse:
  # all Rust files are packed, tests and benchmarks included.
  spec.files = Dir.chdir(__dir__) do
    packed = Dir["Cargo.{toml,lock}", "LICENSE", "*.md", ".yardopts", "docs/**/*.md", "examples/**/*", "exe/*", "share/**/*",
                 "lib/**/*.{rb,tt,rake}", "ext/**/*.{rs,toml,rb,md}"]
    packed.select { |path| File.file?(path) }.grep_v(%r{/target/})
  end
  spec.bindir = "exe"
  spec.executables = Dir[File.join(__dir__, "exe/*")].map { |path| File.basename(path) }
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/acemq_native/extconf.rb"]
end
