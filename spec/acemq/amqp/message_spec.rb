# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Message do
  it "is built from a payload and an envelope alone" do
    message = described_class.new(payload: { "a" => 1 }, envelope: AceMQ::AMQP::Envelope.new(id: "m-1", attempt: 3))

    expect(message).to have_attributes(id: "m-1", attempt: 3, redelivered?: false, body: nil)
  end

  it "refuses what a message does not have" do
    expect { described_class.new(topic: "x") }.to raise_error(ArgumentError, /topic/)
  end
end

RSpec.describe AceMQ::AMQP::Delivery do
  it "settles through what it was given" do
    told = []
    delivery = described_class.new(body: "", on_ack: -> { told << :ack }, on_nack: ->(requeue) { told << requeue })

    delivery.ack
    delivery.nack
    delivery.nack(requeue: true)

    expect(told).to eq([:ack, false, true])
  end
end
