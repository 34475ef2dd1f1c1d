# frozen_string_literal: true

require "erb"
require "open3"
require "rbconfig"
require "shellwords"
require "yaml"
require_relative "docs/document"

RSpec.describe "The documents" do
  # docs/testing_spec.rb runs that page, within examples.
  run_here = Docs::Document.all.reject { |document| document.blocks("ruby").empty? || document.name == "testing" }

  run_here.each do |document|
    it "say Ruby that runs: #{document.name}" do
      runner = File.expand_path("docs/run.rb", __dir__)
      servers = { "AMQP_URL" => broker.url, "POSTGRES_URL" => AceMQ::TestServers.postgres.url }
      output, status = Open3.capture2e(servers, RbConfig.ruby, "-I", File.join(Docs::Document::ROOT, "lib"),
                                       runner, document.path)
      expect(status).to be_success, output
    end
  end

  it "say settings that exist" do
    Docs::Document.all.flat_map { |document| document.blocks("yaml") }.each do |block|
      parsed = YAML.load_stream(ERB.new(block.text).result)
      next unless block.text.start_with?("# config/acemq.yml")

      parsed.first.each_value { |settings| AceMQ::Rails::Configuration.new(settings).validate! }
    end
  end

  describe "name commands that exist" do
    let(:commands) { Docs::Document.all.flat_map(&:commands).uniq.map { |command| Shellwords.split(command) } }

    it "of bin/" do
      named = commands.map(&:first).grep(%r{\Abin/(?!rails|acemq)})
      expect(named).not_to be_empty
      expect(named.reject { |name| File.executable?(File.join(Docs::Document::ROOT, name)) }).to eq([])
    end

    it "of bin/acemq, with their options" do
      require "acemq/cli"
      named = commands.select { |name, *| name.match?(%r{\A(bin/)?acemq\z}) }
      expect(named).not_to be_empty
      named.each do |_, command, *arguments|
        known = AceMQ::CLI::Main.commands.fetch(command)
        options = Thor::Options.new(AceMQ::CLI::Main.class_options.merge(known.options))
        expect { options.parse(arguments) }.not_to raise_error
        expect { options.check_unknown! }.not_to raise_error
      end
    end

    it "of rails generate" do
      named = commands.select { |words| words[0, 2] == %w[bin/rails generate] }.map { |words| words[2].delete_prefix("acemq:") }
      folder = File.join(Docs::Document::ROOT, "lib/generators/acemq")
      expect(named).not_to be_empty
      expect(named.reject { |name| File.exist?(File.join(folder, name, "#{name}_generator.rb")) }).to eq([])
    end
  end
end
