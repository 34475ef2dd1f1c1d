# frozen_string_literal: true

require "bundler"
require "fileutils"
require "tmpdir"
require "uri"

# What a user does with the gem, done with this checkout: build, install, call from somewhere else.
module Package
  ROOT = File.expand_path("..", __dir__)
  FOLDER = File.join(ROOT, "tmp/package")
  GEM_FILE = File.join(FOLDER, "acemq_native.gem")
  GEM_HOME = File.join(FOLDER, "gem home") # with a space: a path may have one
  CALL = <<~RUBY
    require "acemq_native"
    store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
    raise "the extension does not answer" unless store.first_time?("m-1") && !store.first_time?("m-1")
    library = $LOADED_FEATURES.grep(%r{acemq_native/acemq_native[.]}).fetch(0)
    raise "loaded from the checkout: \#{library}" if library.start_with?(ARGV.fetch(0) + "/lib/")
    puts "called \#{library} (\#{File.size(library) / 1024} kB)"
  RUBY

  module_function

  def outside(env, *command)
    Bundler.with_unbundled_env { Dir.mktmpdir { |folder| Rake.sh(env, *command, chdir: folder, verbose: false) } }
  end

  def build
    FileUtils.mkdir_p(FOLDER)
    Bundler.with_unbundled_env { Rake.sh("gem", "build", "--output", GEM_FILE, "acemq_native.gemspec", chdir: ROOT) }
  end

  def install
    FileUtils.rm_rf(GEM_HOME)
    # The recipe is what is checked, not the machine code: link-time optimisation would take a minute more.
    env = { "GEM_HOME" => GEM_HOME, "ACEMQ_CARGO_PROFILE" => nil, "CARGO_TARGET_DIR" => nil,
            "CARGO_PROFILE_RELEASE_LTO" => "off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS" => "16" }
    outside(env, "gem", "install", "--local", "--no-document", GEM_FILE)
    left = Dir.glob(File.join(GEM_HOME, "gems/*/ext/**/target"))
    raise "the installation leaves cargo's work behind: #{left.join(", ")}" if left.any?

    outside(env, RbConfig.ruby, "-e", CALL, ROOT)
  end

  # With the checkout's cargo folder and profile, where the dependencies are built already.
  def bundle_from_git
    app = File.join(FOLDER, "app")
    FileUtils.rm_rf(app)
    FileUtils.mkdir_p(app)
    File.write(File.join(app, "Gemfile"), <<~GEMFILE)
      gem "acemq_native", git: #{"file://#{URI::DEFAULT_PARSER.escape(ROOT)}".dump}, ref: #{last_commit.dump}
    GEMFILE
    env = { "BUNDLE_GEMFILE" => File.join(app, "Gemfile"), "BUNDLE_PATH" => File.join(app, "bundle"),
            "BUNDLE_SILENCE_ROOT_WARNING" => "1", "BUNDLE_SILENCE_DEPRECATIONS" => "1",
            "ACEMQ_CARGO_PROFILE" => "dev", "CARGO_TARGET_DIR" => File.join(ROOT, "target") }
    outside(env, "bundle", "install")
    outside(env, "bundle", "exec", RbConfig.ruby, "-e", CALL, ROOT)
  end

  def last_commit
    IO.popen(%w[git rev-parse HEAD], chdir: ROOT, &:read).strip
  end
end

desc "Build the gem, install it, and call it from outside of the checkout; the same from git"
task package: %w[package:install package:git]

namespace :package do
  desc "Build tmp/package/acemq_native.gem"
  task(:build) { Package.build }

  desc "Install the built gem into a folder of its own and call it"
  task(install: :build) { Package.install }

  desc "Install the last commit with Bundler, as a git source, and call it"
  task(:git) { Package.bundle_from_git }
end
