# frozen_string_literal: true

require_relative "amqp/patterns"
require_relative "rails"

module AceMQ
  # What an operator does with an outbox: the commands of `acemq`, the rake tasks and the recurring jobs all call this.
  # Nothing here prints, traps a signal on its own, or ends the process.
  module Operations
    autoload :DatabaseFailure, File.expand_path("operations/database_failure", __dir__)
    autoload :Doctor, File.expand_path("operations/doctor", __dir__)
    autoload :Drain, File.expand_path("operations/drain", __dir__)
    autoload :Outboxes, File.expand_path("operations/outboxes", __dir__)
    autoload :Purge, File.expand_path("operations/purge", __dir__)
    autoload :RelayProcess, File.expand_path("operations/relay_process", __dir__)
    autoload :ServiceManager, File.expand_path("operations/service_manager", __dir__)
    autoload :Status, File.expand_path("operations/status", __dir__)
    autoload :Turn, File.expand_path("operations/turn", __dir__)
  end
end
