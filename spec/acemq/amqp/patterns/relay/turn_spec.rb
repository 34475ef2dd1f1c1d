# frozen_string_literal: true

require "timeout"

RSpec.describe AceMQ::AMQP::Patterns::Relay::Turn do
  subject(:turn) { described_class.new }

  def sweeps
    loop { turn.take_for_sweep(-> {}) { Thread.pass } }
  end

  def sweeps_until_timeout
    Timeout.timeout(0.001 + (rand * 0.003)) { sweeps }
  rescue Timeout::Error => e
    e
  end

  def expect_free
    expect(turn).not_to be_busy
    expect(Thread.new { turn.take { :taken } }.join(5)&.value).to eq :taken
    expect(Thread.new { turn.take_for_sweep(-> {}) { :taken } }.join(5)&.value).to eq :taken
  end

  it "is free again whenever its sweeps are killed" do
    150.times do
      sweeping = Array.new(4) { Thread.new { sweeps } }
      sleep rand * 0.004 # anywhere in a sweep, or between two
      sweeping.each(&:kill).each(&:join)
    end

    expect_free
  end

  it "is free again whenever its sweeps run into a Timeout, beside a thread that goes on" do
    background = Thread.new { loop { turn.take { Thread.pass } } }
    150.times do
      sweeping = Array.new(3) { Thread.new { sweeps_until_timeout } }
      expect(sweeping.map(&:value)).to all(be_a(Timeout::Error))
    end
    background.kill.join

    expect_free
  end

  it "lets an interrupt end what is done in it, and the waiting for it" do
    inside = Thread::Queue.new
    holder = Thread.new { turn.take { (inside << 1) && sleep } }
    inside.pop
    waiting = Thread.new { turn.take_for_sweep(-> { inside << 2 }) { :never } }
    inside.pop

    expect([waiting, holder].map { |thread| thread.kill.join(5) }).to eq [waiting, holder]
    expect_free
  end

  it "comes before the thread's next one" do
    order = Thread::Queue.new
    waiting = Thread::Queue.new
    inside = Thread::Queue.new
    background = Thread.new { 2.times { |n| turn.take { (inside << 1) && waiting.pop && (order << n) } } }
    inside.pop
    turn.take_for_sweep(-> { waiting << 1 }) { order << :sweep }
    waiting << 1
    background.join

    expect(Array.new(3) { order.pop }).to eq [0, :sweep, 1]
  end

  it "refuses a sweep within a sweep" do
    expect { turn.take_for_sweep(-> {}) { turn.take_for_sweep(-> {}) { nil } } }.to raise_error(ThreadError, /within a sweep/)
    expect_free
  end

  it "tells when it is free, however long it may be waited for" do
    inside = Thread::Queue.new
    holder = Thread.new { turn.take { (inside << 1) && sleep } }
    inside.pop
    expect(turn.wait_until_free(AceMQ::AMQP::Clock.now)).to be false

    waiting = Thread.new { turn.wait_until_free(Float::INFINITY) }
    holder.kill.join
    expect(waiting.join(5)&.value).to be true
  end
end
