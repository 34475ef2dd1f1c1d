# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::OutboxRelay, "#pause" do
  include AceMQ::SpecSupport::Records

  let(:store) { AceMQ::SpecSupport::FakeClaimingStore.new }
  let(:pipeline) { AceMQ::SpecSupport::ScriptedPipeline.new }
  let(:relay) { described_class.new(pipeline, store, interval: 0.01, on_error: ->(_) {}).tap { |relay| relays << relay } }

  it "claims nothing until it is resumed, and says so" do
    relay.start
    eventually { expect(store.claims).not_to be_empty }
    expect(relay.pause).to be relay
    eventually { expect(relay.state).to have_attributes(name: :paused, reason: /resume/) }
    expect(relay).to be_paused.and be_running
    add_records(store, "1" => "a")
    claims = store.claims.size
    5.times { relay.wake && sleep(0.01) } # time in which it would have claimed
    expect([store.claims.size, store.published]).to eq [claims, []]

    relay.resume
    eventually { expect(store.published).to eq %w[1] }
    expect(relay).not_to be_paused
    eventually { expect(relay.state.name).to eq :idle }
  end

  it "lets the batch on its way end by itself" do
    add_records(store, "1" => "a")
    pipeline.stalled = true
    relay.start
    eventually { expect(relay.state.name).to eq :publishing }
    relay.pause
    expect(relay.state.name).to eq :publishing
    pipeline.tickets.last.answer!

    eventually { expect([store.published, relay.state.name]).to eq [%w[1], :paused] }
  end

  it "is not what a sweep obeys" do
    relay.start.pause
    add_records(store, "1" => "a")

    expect(relay.sweep).to eq 1
    expect(relay.state.name).to eq :paused
  end

  it "ends when it is closed, and may come before the start" do
    relay.pause
    relay.start
    eventually { expect(relay.state.name).to eq :paused }
    relay.close

    expect([relay.state.name, relay.running?]).to eq [:closed, false]
  end
end
