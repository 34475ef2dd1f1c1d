class OutboxMessage < ApplicationRecord
  self.table_name = "acemq_outbox"
end
