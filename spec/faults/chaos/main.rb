# frozen_string_literal: true

# What bin/chaos runs.

require "optparse"
require_relative "run"

# The command's options, checked.
class Options
  Plan = AceMQ::Chaos::Plan
  DATABASES = %w[postgres mariadb sqlite].freeze
  MINUTES = 2.0

  # @param arguments [Array<String>]
  # @raise [OptionParser::ParseError]
  def initialize(arguments)
    @given = { seed: Random.new_seed % 1_000_000, minutes: MINUTES }
    rest = parser.parse(arguments, into: @given)
    raise OptionParser::InvalidArgument, rest.join(" ") if rest.any?
  end

  def seed
    @given[:seed]
  end

  # @return [Hash] keywords of {AceMQ::Chaos::Run}
  def to_h
    { seed: seed, seconds: @given[:minutes] * 60, only: @given[:episode],
      databases: chosen(:database, DATABASES), failpoints: chosen(:failpoint, Plan::FAILPOINTS),
      faults: chosen(:fault, Plan::FAULTS) }
  end

  # @param number [Integer]
  # @return [String] the command that plays this episode again
  def again(number)
    lists = %i[database failpoint fault].filter_map { |list| "--#{list} #{@given[list].join(",")}" if @given[list] }
    ["bin/chaos", *lists, "--seed #{seed} --episode #{number}"].join(" ")
  end

  private

  def parser
    OptionParser.new do |parser|
      parser.banner = "usage: bin/chaos [options]"
      parser.on("--minutes N", Float, "how long; an episode that has begun is finished (#{MINUTES})")
      parser.on("--seed N", Integer, "the same one plans the same episodes")
      parser.on("--database LIST", Array, DATABASES.join(","))
      parser.on("--failpoint LIST", Array, Plan::FAILPOINTS.join(","))
      parser.on("--fault LIST", Array, "what dies; relay, link, broker, database for all of each: #{Plan::FAULTS.join(",")}")
      parser.on("--episode N", Integer, "only this one of the same seed and lists")
    end
  end

  def chosen(list, all)
    return all unless @given[list]

    names = @given[list].flat_map { |name| all.grep(/\A#{Regexp.escape(name)}\./).presence || [name] }
    return names if (names - all).empty?

    raise OptionParser::InvalidArgument, "--#{list}: #{(names - all).join(", ")} is none of #{all.join(", ")}"
  end
end

begin
  options = Options.new(ARGV)
  run = AceMQ::Chaos::Run.new(**options.to_h)
rescue OptionParser::ParseError => e
  abort "bin/chaos: #{e.message}"
end

begin
  puts "seed #{options.seed}"
  passed = run.call
rescue Interrupt
  puts "interrupted"
rescue AceMQ::TestServers::StartError => e
  abort "bin/chaos: #{e.message}"
end

puts "", run.matrix, ""
run.failures.each do |failure|
  puts "#{failure.plan}: #{failure.complaints.join("; ")}", "  #{options.again(failure.plan.number)}   logs: #{failure.folder}"
end
puts passed ? "Nothing lost, nobody blamed wrongly, nothing repeated too often, nothing left waiting." : "It does not hold."
exit passed ? true : false
