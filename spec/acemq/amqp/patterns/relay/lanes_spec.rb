# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::Relay::Lanes do
  include AceMQ::SpecSupport::Records

  def apart(records, ordering = :destination)
    described_class.new(ordering, :continue).before_and_behind_failed(records).map { |list| list.map(&:id) }
  end

  let(:records) do
    [record("a-1", to: "a", attempts: 2), record("a-2", to: "a", attempts: 0), record("b-1", to: "b", attempts: 0),
     record("b-2", to: "b", attempts: 1), record("b-3", to: "b", attempts: 0), record("c-1", to: "c")]
  end

  it "puts what is behind a record that has failed before into a second round" do
    expect(apart(records)).to eq [%w[a-1 b-1 b-2 c-1], %w[a-2 b-3]]
  end

  it "does so for the whole table where the whole table waits, and for nobody where nobody does" do
    expect(apart(records, :strict)).to eq [%w[a-1], %w[a-2 b-1 b-2 b-3 c-1]]
    expect(apart(records, :none)).to eq [%w[a-1 a-2 b-1 b-2 b-3 c-1], []]
  end
end
