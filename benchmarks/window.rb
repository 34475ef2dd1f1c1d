# frozen_string_literal: true

# What `first_time?` costs at 1,000 and at 1,000,000 remembered keys, beside a Ruby Hash that does the same.
#
#   ruby benchmarks/window.rb        needs no server
#   BLOCKS=200 ROUNDS=7

require_relative "support"

BLOCKS = Benchmarks.number("BLOCKS", 200)
ROUNDS = Benchmarks.number("ROUNDS", 7)
KEYS = Array.new(500) { |i| "key-#{i}" }.freeze
SIZES = [1_000, 1_000_000].freeze

# A store that stays at its size: what a block of calls has claimed is forgotten again, outside of the measurement.
class Window
  def initialize(size)
    @store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new(window: 86_400)
    size.times { |i| @store.first_time?("fill-#{i}") }
  end

  def block
    Benchmarks.seconds { KEYS.each { |key| @store.first_time?(key) } }
  ensure
    KEYS.each { |key| @store.forget(key) }
  end
end

# The same with a Hash and a monotonic clock, but without an expiry, owners, or a lock between threads.
class PlainHash
  def initialize(size)
    @keys = {}
    size.times { |i| @keys["fill-#{i}"] = 0.0 }
  end

  def block
    Benchmarks.seconds do
      KEYS.each { |key| @keys.key?(key) || (@keys[key] = Process.clock_gettime(Process::CLOCK_MONOTONIC)) }
    end
  ensure
    KEYS.each { |key| @keys.delete(key) }
  end
end

# The median of many short blocks, the two sizes taking turns: what the machine does besides weighs on both.
def round(subjects)
  GC.start
  blocks = subjects.transform_values { [] }
  BLOCKS.times { subjects.each { |size, subject| blocks[size] << subject.block } }
  blocks.transform_values { |times| Benchmarks.median(times) / KEYS.size * 1e9 }
end

def measure(kind)
  subjects = SIZES.to_h { |size| [size, kind.new(size)] }
  rounds = Array.new(ROUNDS) { round(subjects) }
  SIZES.to_h { |size| [size, Benchmarks.median(rounds.map { |figures| figures[size] })] }
       .merge(ratio: Benchmarks.median(rounds.map { |figures| figures[SIZES.last] / figures[SIZES.first] }))
end

ours = measure(Window)
hash = measure(PlainHash)
puts "nanoseconds per first_time? of a new key, median of #{ROUNDS} rounds"
[["InMemoryIdempotencyStore", ours], ["a Ruby Hash", hash]].each do |name, figures|
  puts format("  %-26s at 1,000 keys %6d   at 1,000,000 keys %6d   ratio %.2f", name, figures[1_000], figures[1_000_000], figures[:ratio])
end
