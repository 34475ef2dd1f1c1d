class Order < ApplicationRecord
  def self.place!(params, outbox: ActiveRecordOutboxStore.new)
    transaction do
      order = create!(params)
      Inventory.reserve!(order)

      outbox.add(
        AceMQ::AMQP::Patterns.record(
          AceMQ::Rails.connection, order.as_json,
          to: "order.placed", exchange: "shop-events", type: "order.placed.v2"
        )
      )
      order
    end
  end
end
