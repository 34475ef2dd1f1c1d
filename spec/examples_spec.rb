# frozen_string_literal: true

require "open3"
require "rbconfig"

RSpec.describe "The examples" do
  def run(name, env = {})
    root = File.expand_path("..", __dir__)
    output, status = Open3.capture2e(env, RbConfig.ruby, "-I", File.join(root, "lib"), File.join(root, "examples", name))
    expect(status).to be_success, output
    output
  end

  it "publish what was committed and nothing else" do
    output = run("outbox.rb", "ACEMQ_URL" => AceMQ::TestServers.rabbitmq.url)

    expect(output).to eq(<<~TEXT)
      published: 1
      in the queue: {"number":"A-1"}
    TEXT
  end

  it "charge once for three deliveries" do
    expect(run("idempotent_handler.rb")).to end_with("charges: 1\n")
  end
end
