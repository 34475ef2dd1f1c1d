# frozen_string_literal: true

require "shellwords"
require "yaml"
require "acemq/cli"
require "acemq/metrics"
require "acemq/operations"

# What the operator's page, the alerts and the dashboard name exists.
RSpec.describe "docs/operating.md" do
  root = File.expand_path("../..", __dir__)

  let(:text) { File.read(File.join(root, "docs/operating.md")) }
  let(:alerts) { YAML.safe_load(File.read(File.join(root, "share/prometheus/alerts.yml")))["groups"].flat_map { |group| group["rules"] } }
  let(:dashboard) { JSON.parse(File.read(File.join(root, "share/grafana/acemq.json"))) }

  def typed
    text.scan(/^```console\n(.*?)^```/m).flatten.flat_map(&:lines).grep(/\A\$ (bundle exec )?acemq /)
        .map { |line| Shellwords.split(line.sub(/\A\$ (bundle exec )?/, "").sub(/ {2,}#.*/, "")).drop(1) }
  end

  # @return [Array<String>] names of the library's own metrics, without what histograms add
  def existing
    gauges = AceMQ::Metrics::Gauges.new
    [AceMQ::Metrics.new, gauges].flat_map { |one| one.instance_variable_get(:@families) }
                                .map { |family| family.instance_variable_get(:@name) }
  end

  def named_in(text)
    text.scan(/\bacemq_(?:outbox|relay|messages?|idempotency)_\w+/).map { |name| name.sub(/_(bucket|sum|count)\z/, "") }.uniq
  end

  it "types commands and options that exist" do
    expect(typed.size).to be > 12
    typed.each do |name, *arguments|
      command = AceMQ::CLI::Main.all_commands.fetch(name)
      known = AceMQ::CLI::Main.class_options.values + command.options.values
      options = Thor::Options.new(known.to_h { |option| [option.name.to_sym, option] })
      expect { options.parse(arguments) && options.check_unknown! }.not_to raise_error
    end
  end

  it "lists every command, and every exit code" do
    expect(AceMQ::CLI::Main.all_commands.keys - %w[help]).to all(satisfy { |name| text.include?("`acemq #{name}`") })
    codes = AceMQ::CLI::ExitCode.constants.map { |name| AceMQ::CLI::ExitCode.const_get(name) }
    expect(text.scan(/^\| (\d+) \|/).flatten.map(&:to_i)).to match_array codes
  end

  it "names every metric, and none that does not exist" do
    expect(named_in(text) - %w[acemq_outbox] - existing).to eq []
    expect(existing - named_in(text) - named_in(File.read(File.join(root, "docs/idempotency.md")))).to eq []
  end

  it "explains every alert, and every alert uses metrics that exist" do
    expect(text.scan(/^### (\w+)$/).flatten).to match_array(alerts.map { |rule| rule["alert"] })
    expect(alerts.flat_map { |rule| named_in(rule["expr"]) } - existing).to eq []
  end

  it "has a dashboard of metrics that exist, on every alert" do
    expressions = dashboard["panels"].flat_map { |panel| panel["targets"].map { |target| target["expr"] } }
    expect(expressions.flat_map { |expression| named_in(expression) } - existing).to eq []
    expect(dashboard["panels"].map { |panel| panel["id"] }.uniq.size).to eq dashboard["panels"].size
  end

  it "names files, signals and events that exist" do
    files = text.scan(%r{\]\(\.\./([^)]+)\)}).flatten
    expect(files).to all(satisfy { |file| File.exist?(File.join(root, file)) })
    expect(text.scan(/^\| ([A-Z, ]+) \| (?:claims|pauses|goes|writes)/).flatten.flat_map { |cell| cell.split(", ") })
      .to match_array AceMQ::Operations::RelayProcess::SIGNALS
    events = text[/\(`add`.*?\)/m].scan(/`(\w+)`/).flatten
    expect(events.map(&:to_sym) - AceMQ::AMQP::Notifications::NAMES.keys).to eq []
  end
end
