# frozen_string_literal: true

require_relative "support/warnings_of_our_own"
require_relative "support/servers"

require "acemq_native"

Dir[File.join(__dir__, "support", "*.rb")].sort.each { |file| require file }

RSpec.configure do |config|
  config.order = :random
  Kernel.srand config.seed

  config.disable_monkey_patching!
  config.example_status_persistence_file_path = File.expand_path("../tmp/spec_status.txt", __dir__)
  config.filter_run_when_matching :focus
  config.expect_with(:rspec) { |expectations| expectations.max_formatted_output_length = 2_000 }
  config.mock_with(:rspec) { |mocks| mocks.verify_partial_doubles = true }

  # The full numbers of a promise, minutes long: `bin/test --long`.
  config.filter_run_excluding(:long) unless ENV["ACEMQ_LONG"] == "1"

  # A server named by ACEMQ_TEST_* cannot be stopped or paused by us: such an example is skipped, and says why.
  AceMQ::TestServers::External.refuse_with do |message|
    example = RSpec.current_example
    example ? example.example_group_instance.skip(message) : raise(RSpec::Core::Pending::SkipDeclaredInExample, message)
  end

  config.include AceMQ::SpecSupport::Eventually
end
