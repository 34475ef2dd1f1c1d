# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Consuming::WaitingRoom do
  subject(:room) { described_class.new(name) { |one| out << one and gate&.pop } }

  # Its own: the thread of the example before may still be on its way out.
  let(:name) { "spec #{SecureRandom.hex(4)}" }
  let(:out) { Thread::Queue.new }
  let(:gate) { nil }
  let(:soon) { AceMQ::AMQP::Deadline.in(5) }

  after { room.close }

  def threads
    Thread.list.select { |thread| thread.name == name && thread.alive? }
  end

  it "lets out by time, whoever came first" do
    { "third" => 0.15, "first" => 0.03, "second" => 0.08 }.each { |name, delay| room.add(name, delay) }

    expect(Array.new(3) { out.pop }).to eq(%w[first second third])
    expect(room.size).to eq(0)
  end

  it "has no thread until somebody waits, and one then" do
    room
    expect(threads).to be_empty
    50.times { |n| room.add(n, 5) }

    expect(threads.size).to eq(1)
    expect(room.size).to eq(50)
  end

  it "lets everybody out at once when it is told to hurry, who comes later too" do
    room.add("waiting", 60)
    room.hurry
    room.add("late", 60)

    expect(Array.new(2) { out.pop }).to eq(%w[waiting late])
    expect(room.wait_until_empty(soon)).to be(true)
  end

  # Nearly for ever, and longer than a condition variable takes: by a policy or a handler's answer.
  it "keeps who is to wait for ages, and goes on letting out others" do
    [1e20, Float::INFINITY].each { |delay| room.add("patient", delay) }
    waiting = threads
    eventually { expect(waiting).to all(be_stop) }
    room.add("next", 0)

    expect(Timeout.timeout(5) { out.pop }).to eq("next")
    expect(threads).to eq(waiting)
    expect(room.wait_until_empty(AceMQ::AMQP::Deadline.in(0.05))).to be(false)
    room.hurry
    expect(room.wait_until_empty(AceMQ::AMQP::Deadline.in(Float::INFINITY))).to be(true)
  end

  context "with somebody on the way out" do
    let(:gate) { Thread::Queue.new }

    it "is not empty yet" do
      room.add("slow", 0)
      out.pop
      expect(room.wait_until_empty(AceMQ::AMQP::Deadline.in(0.05))).to be(false)
      gate << true

      expect(room.wait_until_empty(soon)).to be(true)
    end
  end

  it "goes on when something fails on the way out" do
    bad, good = %w[bad good].map { |target| Struct.new(:target).new(target) }
    failing = described_class.new(name) { |one| one == bad ? raise("bug") : out << one }
    expect do
      failing.add(bad, 0)
      failing.add(good, 0.01)
      expect(out.pop).to be(good)
    end.to output(/on its way to bad .*bug/).to_stderr
    failing.close
  end

  it "goes on with another thread when its own was killed" do
    room.add("first", 60)
    threads.each(&:kill).each(&:join)
    room.add("second", 0)

    expect(out.pop).to eq("second")
  end

  it "takes nobody when it is closed, says who was left, and ends its thread" do
    room.add("left", 60)
    expect(room.close).to eq(["left"])

    expect(room.add("late", 0)).to be(false)
    eventually { expect(threads).to be_empty }
  end
end
