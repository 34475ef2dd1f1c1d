# frozen_string_literal: true

# What config/puma.rb may call.
def workers(_count) = nil
def preload_app! = nil

# Puma itself is not an application's library.
def plugin(name) = File.exist?(File.expand_path("../../../lib/puma/plugin/#{name}.rb", __dir__)) || raise(LoadError, name.to_s)
