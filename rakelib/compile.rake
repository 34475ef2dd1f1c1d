# frozen_string_literal: true

require "fileutils"
require "rbconfig"

# Builds the extension with the same extconf.rb as an installation, into lib/ of the checkout.
# Cargo alone decides what is stale, so asking again costs a fraction of a second.
module Extension
  ROOT = File.expand_path("..", __dir__)
  EXTCONF = File.join(ROOT, "ext/acemq_native/extconf.rb")
  LIBRARY = "acemq_native.#{RbConfig::CONFIG["DLEXT"]}".freeze
  INSTALLED = File.join(ROOT, "lib/acemq_native", LIBRARY)

  module_function

  def build(profile)
    folder = File.join(ROOT, "tmp/compile", profile)
    configure(folder, profile)
    Rake.sh("make", "--no-print-directory", "--silent", "-C", folder, verbose: false)
    place(File.join(folder, LIBRARY))
  end

  def configure(folder, profile)
    makefile = File.join(folder, "Makefile")
    return if File.exist?(makefile) && File.mtime(makefile) > File.mtime(EXTCONF)

    FileUtils.mkdir_p(folder)
    Dir.chdir(folder) do
      Rake.sh({ "ACEMQ_CARGO_PROFILE" => profile }, RbConfig.ruby, EXTCONF, out: File::NULL, verbose: false)
    end
  end

  # Renamed into place: writing over a library that a running process has mapped ends that process.
  def place(built)
    return if File.exist?(INSTALLED) && FileUtils.identical?(built, INSTALLED)

    FileUtils.cp(built, "#{INSTALLED}.new")
    File.rename("#{INSTALLED}.new", INSTALLED)
    puts "built lib/acemq_native/#{LIBRARY}"
  end
end

desc "Build the extension (dev profile: quick to build; ACEMQ_CARGO_PROFILE=release for another)"
task(:compile) { Extension.build(ENV.fetch("ACEMQ_CARGO_PROFILE", "dev")) }

namespace :compile do
  desc "Build the extension as users get it, for benchmarks"
  task(:release) { Extension.build("release") }
end

desc "Remove what was built"
task :clean do
  FileUtils.rm_rf([Extension::INSTALLED, File.join(Extension::ROOT, "tmp/compile"), File.join(Extension::ROOT, "target")])
end
