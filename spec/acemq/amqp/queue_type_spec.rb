# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::QueueType do
  def resolve(**options)
    described_class.resolve(name: "q", **options)
  end

  it "is a quorum queue unless something says otherwise" do
    expect(resolve).to eq([:quorum, { "x-queue-type" => "quorum" }])
  end

  it "is a classic queue, without the argument, where quorum is impossible" do
    expect(resolve(durable: false)).to eq([:classic, {}])
    expect(resolve(exclusive: true)).to eq([:classic, {}])
    expect(resolve(auto_delete: true)).to eq([:classic, {}])
  end

  it "is what the keyword or the argument says" do
    expect(resolve(requested: "stream")).to eq([:stream, { "x-queue-type" => "stream" }])
    expect(resolve(arguments: { "x-queue-type": "classic", "x-max-length": 1 })).to eq([:classic, { "x-max-length" => 1 }])
    expect(resolve(requested: :quorum, arguments: { "x-queue-type" => "quorum" }).first).to eq(:quorum)
  end

  it "refuses contradictions, unknown types, and what a type cannot be" do
    expect { resolve(requested: :classic, arguments: { "x-queue-type" => "quorum" }) }
      .to raise_error(AceMQ::AMQP::QueueTypeError, /"q".*classic.*quorum/)
    expect { resolve(requested: :lazy) }.to raise_error(AceMQ::AMQP::QueueTypeError, /:lazy.*classic, quorum, stream/)
    expect { resolve(requested: :quorum, exclusive: true) }
      .to raise_error(AceMQ::AMQP::QueueTypeError, /exclusive: true/)
  end
end
