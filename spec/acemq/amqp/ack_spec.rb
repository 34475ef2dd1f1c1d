# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Ack do
  it "answers one question with yes" do
    answers = [described_class.accept, described_class.retry, described_class.reject, described_class.park,
               described_class.in_progress]
    questions = %i[accept? retry? reject? park? in_progress?]

    answers.each_with_index do |answer, index|
      expect(questions.select { |question| answer.public_send(question) }).to eq([questions[index]])
    end
  end

  it "carries a reason" do
    error = RuntimeError.new("boom")

    expect(described_class.reject(error).error).to be(error)
    expect(described_class.park("odd").to_s).to eq("park (odd)")
  end

  it "equals any answer with the same action" do
    expect(described_class.retry("a")).to eq(described_class.retry("b"))
    expect(described_class.retry("a").hash).to eq(described_class.retry.hash)
    expect(described_class.accept).not_to eq(described_class.reject)
  end

  it "waits some seconds for whoever is at it" do
    expect(described_class.in_progress.delay).to eq(5.0)
    expect(described_class.in_progress(2).delay).to eq(2.0)
    expect { described_class.in_progress(-1) }.to raise_error(ArgumentError)
  end

  it "is frozen" do
    expect(described_class.accept).to be_frozen
  end
end
