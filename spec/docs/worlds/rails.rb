# frozen_string_literal: true

# The document's topology, and the store that the install generator makes.
Docs.declare(AceMQ::AMQP::Topology.new.queue("shop.payments", dead_letter: true)
                                      .queue("shop.payments.dlq", queue_type: :classic)
                                      .parked_queue("shop.payments"))

class ActiveRecordOutboxStore < AceMQ::AMQP::Patterns::ActiveRecordOutboxStore
end
