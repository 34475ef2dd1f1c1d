# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Consuming::Original, :consuming do
  subject(:original) { described_class.new(delivery.delivery, AceMQ::AMQP::Envelope.new) }

  let(:delivery) { fake({}, source: fake_source) }

  it "is settled once: the broker closes the channel over a second answer" do
    expect([original.ack, original.ack, original.give_back]).to eq([true, false, false])
    expect(delivery.answers).to eq([:ack])
    expect(original).not_to be_alive
  end

  it "is settled once from any number of threads" do
    answers = Array.new(8) { |n| Thread.new { n.even? ? original.ack : original.give_back } }.map(&:value)

    expect(answers.count(true)).to eq(1)
    expect(delivery.answers.size).to eq(1)
  end

  it "is alive as long as its channel is" do
    expect(original).to be_alive
    delivery.delivery.source.gone = true
    expect(original).not_to be_alive
  end
end
