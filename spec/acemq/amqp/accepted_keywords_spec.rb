# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::AcceptedKeywords do
  def passed(callable)
    described_class.of(callable, { a: 1, b: 2 })
  end

  it "keeps the keywords that a method names" do
    expect(passed(->(a:, c: 3) { [a, c] })).to eq(a: 1)
    expect(passed(->(text) { text })).to eq({})
  end

  it "keeps all where everything is taken" do
    expect(passed(->(**all) { all })).to eq(a: 1, b: 2)
    expect(passed(proc { |*all| all })).to eq(a: 1, b: 2)
  end
end
