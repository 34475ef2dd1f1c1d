# frozen_string_literal: true

require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq replay", :broker do
  before { AceMQ::Rails.connection = open_connection }

  let(:amqp) { open_connection }
  let(:queue) { new_queue(amqp) }
  let(:dead) { new_queue(amqp, "#{queue}.dlq") }

  def bury(id, error: "boom", type: "order.placed")
    envelope = AceMQ::AMQP::Envelope.new(id: id, error: error, type: type, attempt: 3)
    amqp.publish({ id: id }, to: dead, envelope: envelope)
  end

  it "moves dead letters back to where they are handled" do
    %w[a b c].each { |id| bury(id) }
    run = acemq("replay", dead)

    expect(run).to have_attributes(code: 0, out: /\A3 of 3 messages of #{Regexp.escape(dead)} moved to #{Regexp.escape(queue)}/)
    expect(ids_in(amqp, queue)).to eq %w[a b c]
    expect(amqp.message_count(dead)).to eq 0
  end

  it "moves only what it is told to: so many, of one error, of one type, or one" do
    bury("a", error: "timeout: reading")
    bury("b", error: "no such order")
    bury("c", type: "order.paid")
    acemq("replay", dead, "--error", "timeout")
    expect(ids_in(amqp, queue)).to eq %w[a]
    acemq("replay", dead, "--type", "order.paid")
    expect(ids_in(amqp, queue)).to eq %w[c]
    acemq("replay", dead, "--id", "nobody")
    expect(ids_in(amqp, queue)).to be_empty
    bury("d")
    acemq("replay", dead, "--limit", "1")
    expect(ids_in(amqp, queue)).to eq %w[b]
  end

  it "only counts with --dry-run, and says it to programs" do
    bury("a")
    run = acemq("replay", dead, "--dry-run", "--json")

    expect(run.code).to eq 0
    expect(run.json).to include(from: dead, routing_key: queue, total: 1, replayed: 1, dry_run: true)
    expect(amqp.message_count(dead)).to eq 1
  end

  it "moves them elsewhere if told, and begins again at the first attempt unless told not to" do
    other = new_queue(amqp)
    bury("a")
    acemq("replay", dead, "--to", other)
    expect(AceMQ::AMQP::Envelope.from_headers(drain(amqp, other).first.headers).attempt).to eq 1
    bury("b")
    acemq("replay", dead, "--to", "/#{other}", "--keep-attempts")
    expect(AceMQ::AMQP::Envelope.from_headers(drain(amqp, other).first.headers).attempt).to eq 3
  end

  it "ends with 64 for what cannot be replayed, and moves nothing" do
    bury("a")

    expect(acemq("replay", queue)).to have_attributes(code: 64, err: /where the messages of #{queue} are to go/)
    expect(acemq("replay", dead, "--to", dead)).to have_attributes(code: 64, err: /onto itself would go round in circles/)
    expect(acemq("replay", dead, "--limit", "-1", "--json")).to have_attributes(code: 64, json: { error: /limit: must be/, exit: 64 })
    expect(acemq("replay", dead, "--limit", "1.5")).to have_attributes(code: 64, err: /--limit must be a whole number, not 1.5/)
    expect(acemq("replay", "")).to have_attributes(code: 64, err: /name of the queue is empty/)
    expect(amqp.message_count(dead)).to eq 1
  end

  it "ends with 78 without the queue, and 69 without a broker" do
    expect(acemq("replay", "spec.nowhere.dlq")).to have_attributes(code: 78, err: /there is no queue spec.nowhere.dlq/)
    without_broker
    expect(acemq("replay", dead, "--json")).to have_attributes(code: 69, json: include(exit: 69))
  end
end
