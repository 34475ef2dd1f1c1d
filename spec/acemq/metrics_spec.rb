# frozen_string_literal: true

require "acemq/metrics"

RSpec.describe AceMQ::Metrics do
  include AceMQ::SpecSupport::Records

  subject(:metrics) { described_class.new.start }

  after { metrics.stop }

  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }
  let(:relay) { AceMQ::AMQP::Patterns::OutboxRelay.new(pipeline, store) }
  let(:outbox) { store.class.name }

  def tell(event, **payload)
    AceMQ::AMQP::Notifications.tell(event, **payload)
  end

  def line(name, **labels)
    shown = labels.map { |label, value| "#{label}=\"#{value}\"" }.join(",")
    metrics.to_prometheus[/^#{name}#{Regexp.escape("{#{shown}}") unless labels.empty?} (\S+)$/, 1]&.to_f
  end

  it "counts what a relay does, and how long messages were on their way" do
    metrics
    store.add(record("a", to: "one").tap { |made| made.created_at = Time.now - 3 })
    store.add(record("b", to: "two").tap { |made| made.created_at = Time.now })
    pipeline.verdict("b", returned("two"))
    expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)

    expect(line("acemq_outbox_claimed_total", outbox: outbox)).to eq 2
    expect(line("acemq_outbox_published_total", outbox: outbox, exchange: "shop")).to eq 1
    expect(line("acemq_outbox_publish_failures_total", outbox: outbox, scope: "destination")).to eq 1
    expect(line("acemq_outbox_marked_total", outbox: outbox)).to eq 1
    expect(line("acemq_outbox_commit_to_confirm_seconds_bucket", outbox: outbox, le: "2.5")).to eq 0
    expect(line("acemq_outbox_commit_to_confirm_seconds_bucket", outbox: outbox, le: "5")).to eq 1
    expect(line("acemq_outbox_commit_to_confirm_seconds_count", outbox: outbox)).to eq 1
    expect(line("acemq_relay_batch_seconds_count")).to eq 1
  end

  it "begins at 0 for an outbox that is claimed from, so that the first loss is an increase" do
    metrics
    relay.sweep

    expect(line("acemq_outbox_leases_lost_total", outbox: outbox)).to eq 0
    expect(line("acemq_outbox_publish_failures_total", outbox: outbox, scope: "connection")).to eq 0
  end

  it "counts what is told of" do
    metrics
    tell(:add, outbox: "o", bytes: 1)
    tell(:retire, outbox: "o")
    tell(:lease_lost, outbox: "o", rows: 3)
    tell(:blocked, reason: "memory")
    2.times { tell(:reconnect) }
    tell(:duplicate, key: "k")
    tell(:handle, queue: "q", outcome: "acked")

    expect([line("acemq_outbox_added_total", outbox: "o"), line("acemq_outbox_retirements_total", outbox: "o"),
            line("acemq_outbox_leases_lost_total", outbox: "o"), line("acemq_relay_blocked_total"),
            line("acemq_relay_reconnects_total"), line("acemq_messages_duplicate_total"),
            line("acemq_messages_handled_total", queue: "q", outcome: "acked"),
            line("acemq_message_handle_seconds_count", queue: "q")]).to eq [1, 1, 3, 1, 2, 1, 1, 1]
  end

  it "is in Prometheus' text format" do
    tell(:lease_lost, outbox: %(a "quoted"\\name\n), rows: 1)
    metrics
    tell(:lease_lost, outbox: %(a "quoted"\\name\n), rows: 1)

    expect(metrics.to_prometheus).to include(%(acemq_outbox_leases_lost_total{outbox="a \\"quoted\\"\\\\name\\n"} 1\n))
    labels = /\{([a-z]+="([^"\\\n]|\\.)*",?)+\}/
    expect(metrics.to_prometheus.lines).to all match(/\A(# (HELP|TYPE) acemq_\w+ .+|acemq_\w+(#{labels})? [\d.e+-]+)\n\z/)
    types = metrics.to_prometheus.scan(/^# TYPE (\S+)/).flatten
    expect(types).to eq types.uniq
  end

  it "starts at nothing for what was never used" do
    expect(line("acemq_relay_blocked_total")).to eq 0
  end

  it "stops counting when it is told to" do
    metrics.stop
    tell(:reconnect)

    expect(line("acemq_relay_reconnects_total")).to eq 0
  end

  it "has all of the metrics that it documents" do
    tell(:reconnect)
    documented = File.read(File.expand_path("../../lib/acemq/metrics.rb", __dir__)).scan(/^  # \| (`.+?) \|/).flatten
                     .flat_map { |cell| cell.scan(/acemq_\w+/) }

    expect(metrics.instance_variable_get(:@families).map { |family| family.instance_variable_get(:@name) })
      .to match_array(documented)
  end
end
