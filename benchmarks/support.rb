# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "acemq_native"
require_relative "../spec/support/servers"

# What the benchmarks share: a clock, medians, and a table of ratios.
module Benchmarks
  module_function

  def seconds
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
  end

  def median(values)
    values.sort[values.size / 2]
  end

  # @return [Float] MiB
  def resident
    File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_f / 1024
  end

  def number(name, default)
    Integer(ENV.fetch(name, default))
  end

  # Prints figures beside each other; what they mean is their ratio to the first.
  def report(title, unit, figures)
    base = figures.values.first
    width = figures.keys.map(&:size).max
    puts title
    figures.each do |name, value|
      puts format("  %-#{width}s %12s %s   %6.2f x", name, value.round.to_s.gsub(/(\d)(?=(\d{3})+\z)/, '\1,'), unit, value / base)
    end
    puts
  end
end
