# frozen_string_literal: true

# Ruby's warnings are on for this project's files and fail the run; those of other people's are left out.
module WarningsOfOurOwn
  ROOT = File.expand_path("../..", __dir__)
  OURS = %r{\A#{Regexp.escape(ROOT)}/(?:lib|spec|examples|benchmarks)/}

  @seen = []

  class << self
    attr_reader :seen
  end

  def warn(message, category: nil, **)
    return unless message.match?(OURS)

    WarningsOfOurOwn.seen << message
    category ? super(message, category: category) : super(message)
  end
end

$VERBOSE = true
Warning.extend(WarningsOfOurOwn)

RSpec.configure do |config|
  config.after(:suite) do
    next if WarningsOfOurOwn.seen.empty?

    raise "#{WarningsOfOurOwn.seen.size} warnings in our own code:\n#{WarningsOfOurOwn.seen.uniq.join}"
  end
end
