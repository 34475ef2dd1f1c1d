# frozen_string_literal: true

# As the document's topology has it.
payments = AceMQ::AMQP::Topology.new.queue("shop.payments", dead_letter: true).queue("shop.payments.dlq", queue_type: :classic)
Docs.declare(payments)

# What the last block calls.
module Orders
  def self.handle(_message) = AceMQ::AMQP::Ack.accept
end
