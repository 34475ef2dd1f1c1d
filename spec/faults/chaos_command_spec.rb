# frozen_string_literal: true

require "open3"

RSpec.describe "bin/chaos" do
  main = File.expand_path("chaos/main.rb", __dir__)

  def refused(main, *arguments)
    output, status = Open3.capture2e(RbConfig.ruby, "-I", "lib", main, *arguments)
    expect(status).not_to be_success
    output
  end

  it "refuses what it does not know, and says what it does" do
    expect(refused(main, "--fault", "relay,weather")).to match(%r{bin/chaos: .*weather is none of relay\.kill})
    expect(refused(main, "--failpoint", "after_lunch")).to match(/after_lunch is none of any, before_claim/)
    expect(refused(main, "everything")).to match(%r{bin/chaos: .*everything})
  end

  it "explains itself" do
    output, status = Open3.capture2e(File.expand_path("../../bin/chaos", __dir__), "--help")

    expect(status).to be_success
    expect(output).to include("bin/chaos --minutes 20").and include("--seed 42 --episode 17")
  end
end
