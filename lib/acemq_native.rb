# frozen_string_literal: true

# What Bundler requires: everything the gem has. An application that wants less
# requires "acemq/amqp", "acemq/amqp/patterns" or "acemq/rails" by itself.
require_relative "acemq_native/version"
require_relative "acemq/amqp"
require_relative "acemq/amqp/patterns"
if defined?(Rails::Railtie)
  require_relative "acemq/rails"
  # By itself, because "acemq/rails" may have been loaded before Rails was.
  require_relative "acemq/rails/railtie"
end
