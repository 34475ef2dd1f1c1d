# frozen_string_literal: true

require_relative "../amqp"

module AceMQ
  module AMQP
    # What applications build out of messages: the outbox, its relay and the idempotent handler.
    #
    # `require "acemq/amqp"` alone leaves this module undefined; `require "acemq_native"` loads it.
    module Patterns
      # ActiveRecord and drivers are asked for only when a store on them is named.
      autoload :ActiveRecordOutboxStore, File.expand_path("patterns/active_record_outbox_store", __dir__)
      autoload :ActiveRecordIdempotencyStore, File.expand_path("patterns/active_record_idempotency_store", __dir__)
      autoload :SQLOutboxStore, File.expand_path("patterns/sql_outbox_store", __dir__)
      autoload :SQLIdempotencyStore, File.expand_path("patterns/sql_idempotency_store", __dir__)
      autoload :SQL, File.expand_path("patterns/sql", __dir__)
    end
  end
end

require_relative "patterns/outbox_record"
require_relative "patterns/record"
require_relative "patterns/idempotent_handler"
require_relative "patterns/ordered"
require_relative "patterns/outbox_relay"
require_relative "patterns/in_memory_idempotency_store"
require_relative "patterns/in_memory_outbox_store"
require_relative "patterns/replay"
