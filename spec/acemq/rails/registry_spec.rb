# frozen_string_literal: true

require "acemq/rails"

RSpec.describe AceMQ::Rails::Registry do
  around do |example|
    known = described_class.instance_variable_get(:@classes).dup
    described_class.clear
    example.run
  ensure
    described_class.instance_variable_get(:@classes).replace(known)
  end

  def consumer(queue = nil, parent: AceMQ::Rails::Consumer)
    Class.new(parent) { queue(queue) if queue }
  end

  it "knows the classes that have a queue, in the order they were loaded" do
    stub_const("Payments", consumer("shop.payments"))
    stub_const("Base", consumer)
    stub_const("Mails", consumer("shop.mails", parent: Base))

    expect(described_class.consumers).to eq [Payments, Mails]
    expect(AceMQ::Rails.consumers).to eq [Payments, Mails]
  end

  it "knows a class that has no name" do
    anonymous = consumer("shop.payments")

    expect(described_class.consumers).to eq [anonymous]
  end

  it "has the class that was loaded last under a name" do
    stub_const("Payments", consumer("shop.payments"))
    again = consumer("shop.payments")
    stub_const("Payments", again)

    expect(described_class.consumers).to eq [again]
  end

  it "keeps one class a name when the keyword defines it anew" do
    2.times do
      eval("class ReloadedConsumer < AceMQ::Rails::Consumer; queue 'a'; end", binding, __FILE__, __LINE__)
      @last = ReloadedConsumer
      Object.send(:remove_const, :ReloadedConsumer)
    end
    expect(described_class.consumers).to be_empty

    Object.const_set(:ReloadedConsumer, @last)
    expect(described_class.consumers).to eq [@last]
    expect(described_class.instance_variable_get(:@classes).size).to eq 1
  ensure
    Object.send(:remove_const, :ReloadedConsumer)
  end

  it "finds the classes of queues, and names a queue that nobody handles" do
    stub_const("Payments", consumer("shop.payments"))
    stub_const("Mails", consumer("shop.mails"))

    expect(described_class.for_queues(%w[shop.mails])).to eq [Mails]
    expect { described_class.for_queues(%w[shop.mails shop.mial]) }
      .to raise_error(AceMQ::AMQP::ConfigurationError, /no consumer handles shop\.mial; .*shop\.mails, shop\.payments/)
  end
end
