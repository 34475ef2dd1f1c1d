# frozen_string_literal: true

namespace :acemq do
  desc "Run the consumers until interrupted; the executable acemq-consumer does it better"
  task consume: :environment do
    Rails.application.eager_load!
    AceMQ::Rails.start_relays
    exit(75) unless AceMQ::Rails::Runner.new.run
  end

  desc "Show what config.acemq.topology declares, and declare it"
  task topology: :environment do
    puts AceMQ::Rails.topology.plan
    AceMQ::Rails.apply_topology
    AceMQ::Rails.disconnect!
  end

  desc "Ask the broker how it is, as JSON; fails when it is down"
  task health: :environment do
    require "json"

    report = AceMQ::Rails.health
    puts JSON.pretty_generate(report.to_h)
    AceMQ::Rails.disconnect!
    exit(1) if report.down?
  end

  desc "List the consumer classes, and what each of them handles"
  task consumers: :environment do
    require "acemq/rails/consumer_table"

    Rails.application.eager_load!
    puts AceMQ::Rails::ConsumerTable.new(AceMQ::Rails.consumers)
  end
end
