# frozen_string_literal: true

# What `first_time?` costs at 1,000 and at 1,000,000 remembered keys, beside a Ruby Hash that does the same.
#
#   ruby benchmarks/window.rb        needs no server
#   CALLS=200000 ROUNDS=7
#
# Each round measures the same number of calls of fresh keys at both sizes, one after the other, so that what the
# machine does besides weighs on both; the ratio printed is the median of the rounds' ratios.

require_relative "support"

CALLS = Benchmarks.number("CALLS", 200_000)
ROUNDS = Benchmarks.number("ROUNDS", 7)
SIZES = [1_000, 1_000_000].freeze

# A window that stays at its size while it is measured: fresh keys, a window that is claimed and forgotten again.
class Subject
  def initialize(size)
    @store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new(window: 86_400)
    size.times { |i| @store.first_time?("fill-#{i}") }
    GC.start
  end

  def cost(keys)
    Benchmarks.seconds { keys.each { |key| @store.first_time?(key) } } / keys.size * 1e9
  ensure
    keys.each { |key| @store.forget(key) }
  end
end

# The same with a Hash and a monotonic clock, without an expiry that keeps it small.
class PlainHash
  def initialize(size)
    @keys = {}
    size.times { |i| @keys["fill-#{i}"] = 0.0 }
    GC.start
  end

  def cost(keys)
    Benchmarks.seconds { keys.each { |key| @keys.key?(key) || (@keys[key] = Process.clock_gettime(Process::CLOCK_MONOTONIC)) } } / keys.size * 1e9
  ensure
    keys.each { |key| @keys.delete(key) }
  end
end

def measure(kind)
  subjects = SIZES.to_h { |size| [size, kind.new(size)] }
  rounds = Array.new(ROUNDS) do |round|
    keys = Array.new(CALLS / SIZES.size) { |i| "key-#{round}-#{i}" }
    subjects.transform_values { |subject| subject.cost(keys) }
  end
  SIZES.to_h { |size| [size, Benchmarks.median(rounds.map { |round| round[size] })] }
       .merge(ratio: Benchmarks.median(rounds.map { |round| round[SIZES.last] / round[SIZES.first] }))
end

ours = measure(Subject)
hash = measure(PlainHash)
puts "nanoseconds per first_time? of a new key, median of #{ROUNDS} rounds"
[["InMemoryIdempotencyStore", ours], ["a Ruby Hash", hash]].each do |name, figures|
  puts format("  %-26s at 1,000 keys %6d   at 1,000,000 keys %6d   ratio %.2f", name, figures[1_000], figures[1_000_000], figures[:ratio])
end
