# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::PublishError do
  it "is the record's own when an application's transport raises it" do
    expect(described_class.new("refused"))
      .to have_attributes(scope: :record, unroutable?: false, nacked?: false, permanent?: false, unknown?: false)
    expect(described_class.new("returned", unroutable: true)).to have_attributes(scope: :record, unroutable?: true)
  end

  it "is the connection's while publishing is paused, and nothing was sent" do
    expect(AceMQ::AMQP::PublishingPausedError.new("alarm"))
      .to have_attributes(scope: :connection, unroutable?: false, unknown?: false)
  end

  it "is unknown when no confirm came" do
    expect(AceMQ::AMQP::ConfirmTimeout.new("10 s")).to have_attributes(scope: :connection, unknown?: true)
  end
end

RSpec.describe AceMQ::AMQP::TransportError do
  it "is the connection's" do
    expect(described_class.new).to have_attributes(scope: :connection, permanent?: false, unknown?: false)
  end
end
