# frozen_string_literal: true

require "rspec/core/rake_task"

desc "Run the specs (starts its own RabbitMQ, PostgreSQL, and MariaDB when they are needed)"
RSpec::Core::RakeTask.new(:spec)
