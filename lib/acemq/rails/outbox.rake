# frozen_string_literal: true

# An application that has a task of one of these names, as the family's documents write them, keeps its own: both would
# run otherwise.
run = lambda do |task, *arguments|
  next if task.actions.size > 1

  require "acemq/cli"
  code = AceMQ::CLI.run(arguments.compact)
  exit(code) unless code.zero?
end

option = ->(name, variable = name) { "--#{name}=#{ENV.fetch(variable.upcase.tr("-", "_"))}" if ENV.key?(variable.upcase.tr("-", "_")) }
dry_run = -> { "--dry-run" unless ["", "0", "false", "no", "off"].include?(ENV.fetch("DRY_RUN", "").downcase) }

namespace :acemq do
  desc "Publish what the outbox holds, until interrupted; PROBE=9394 answers over HTTP"
  task(relay: :environment) { |task| run.call(task, "relay", option.call("probe"), option.call("threads")) }

  desc "Remove published rows; OLDER_THAN=30d (7d), DRY_RUN=1"
  task(purge_outbox: :environment) do |task|
    run.call(task, "purge", "--only=outbox", option.call("older-than"), dry_run.call)
  end

  desc "Remove idempotency keys past their retention; DRY_RUN=1"
  task(purge_idempotency: :environment) do |task|
    run.call(task, "purge", "--only=idempotency", dry_run.call)
  end
end
