# frozen_string_literal: true

# Writes the Makefile that builds the extension with cargo, for `gem install`, `bundle install`, and `rake compile`.
#
#   CARGO                 cargo to use                               default: from PATH, then ~/.cargo/bin
#   ACEMQ_CARGO_PROFILE   cargo profile                              default: release
#   CARGO_TARGET_DIR      folder for cargo's work, kept afterwards   default: removed after an installation

require "mkmf"
require "shellwords"

ROOT = File.expand_path("../..", __dir__)

# @return [String] what a shell reads as `path`, in the words of make
def quote(path)
  Shellwords.escape(path).gsub("$", "$$")
end

def find_cargo
  ENV["CARGO"] || find_executable("cargo") ||
    [File.expand_path("~/.cargo/bin/cargo")].find { |path| File.executable?(path) }
end

# The places where the `clang-sys` crate looks.
def libclang?
  return true if ENV["LIBCLANG_PATH"] || ENV["LLVM_CONFIG_PATH"]

  folders = %w[
    /usr/lib* /usr/lib*/*-* /usr/lib/llvm*/lib /usr/lib/llvm/*/lib* /usr/local/lib* /usr/local/llvm*/lib*
    /opt/homebrew/opt/llvm*/lib /usr/local/opt/llvm*/lib /Library/Developer/CommandLineTools/usr/lib
    /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib
  ]
  folders << `llvm-config --libdir`.strip if find_executable("llvm-config")
  RbConfig::CONFIG["host_os"].match?(/mswin|mingw/) ||
    folders.any? { |folder| Dir["#{folder}/libclang{,-[0-9]*}.{so,so.*,dylib}"].any? }
end

# Without mkmf's own paragraph on missing headers, which would bury the reason.
def give_up(message)
  $makefile_created = true # rubocop:disable Style/GlobalVars
  abort message
end

def version_of(cargo)
  Gem::Version.new(IO.popen([cargo, "--version"], chdir: "/", &:read)[/\d+\.\d+\.\d+/].to_s)
rescue SystemCallError
  Gem::Version.new("0")
end

wanted = File.read(File.join(ROOT, "Cargo.toml"))[/^rust-version\s*=\s*"([\d.]+)"/, 1]
cargo = find_cargo
give_up <<~MESSAGE unless cargo
  acemq_native is built from Rust source, and `cargo` was not found.
  Install Rust #{wanted} or newer (https://rustup.rs), or say where it is with CARGO=/path/to/cargo, then try again.
MESSAGE

found = version_of(cargo)
give_up <<~MESSAGE if found < Gem::Version.new(wanted)
  acemq_native needs Rust #{wanted} or newer, and #{cargo} #{found.segments == [0] ? "does not work" : "is version #{found}"}.
  Update it (`rustup update stable`), or say where a newer one is with CARGO=/path/to/cargo, then try again.
MESSAGE

give_up <<~MESSAGE unless libclang?
  acemq_native reads Ruby's headers while it is built, and `libclang` was not found.
  Install it (Debian, Ubuntu: apt-get install libclang-dev; macOS: xcode-select --install), or say in which folder
  it is with LIBCLANG_PATH=/path/to/folder, then try again.
MESSAGE

# RubyGems and Bundler run this file in its own folder; `rake compile` runs it in one below tmp/.
installing = Dir.pwd == File.realpath(__dir__)
profile    = ENV.fetch("ACEMQ_CARGO_PROFILE", "release")
target_dir = ENV["CARGO_TARGET_DIR"] || (installing ? File.join(Dir.pwd, "target") : File.join(ROOT, "target"))
soext      = RbConfig::CONFIG["SOEXT"]
library    = "#{"lib" unless soext == "dll"}acemq_native.#{soext}"
built      = File.join(File.expand_path(target_dir), profile == "dev" ? "debug" : profile, library)

# RUBY tells the `rb-sys` crate which Ruby to build for; left alone it takes the first one in PATH. A checkout where that
# is the right one is left alone: a changing RUBY makes cargo build again what `cargo clippy` has just built.
ruby_in_path = find_executable("ruby")
right_one    = ruby_in_path && File.realpath(ruby_in_path) == File.realpath(Gem.ruby)
export_ruby  = "export RUBY := #{Gem.ruby.gsub("$", "$$")}" if installing || !right_one

File.write("Makefile", configuration(__dir__).join << <<~MAKE)
  #{export_ruby}
  target_prefix = /acemq_native
  DLLIB = acemq_native.#{RbConfig::CONFIG["DLEXT"]}
  RUBYARCHDIR = $(sitearchdir)$(target_prefix)

  .PHONY: all install clean distclean
  all:
  \t@$(RM) $(DLLIB)
  \t@$(MAKE) $(DLLIB)

  # Not built again by `make install`, which RubyGems runs next.
  $(DLLIB):
  \t#{quote(cargo)} build --locked --profile #{profile} --package acemq_native \\
  \t  --manifest-path #{quote(File.join(__dir__, "Cargo.toml"))} --target-dir #{quote(File.expand_path(target_dir))}
  \t$(COPY) #{quote(built)} $@

  install: $(DLLIB)
  \t$(MAKEDIRS) "$(RUBYARCHDIR)"
  \t$(INSTALL_PROG) $(DLLIB) "$(RUBYARCHDIR)"
  #{"\t$(RM_RF) #{quote(target_dir)}" if installing && !ENV["CARGO_TARGET_DIR"]}

  clean distclean:
  \t$(RM) $(DLLIB)
MAKE
