# frozen_string_literal: true

require "logger"
require "stringio"
require "active_support"
require "active_support/notifications"
require "acemq/rails"
require "acemq/rails/log_subscriber"

RSpec.describe AceMQ::Rails::LogSubscriber do
  let(:out) { StringIO.new }

  around do |example|
    former = ActiveSupport::LogSubscriber.logger
    ActiveSupport::LogSubscriber.logger = Logger.new(out, formatter: ->(level, _, _, text) { "#{level} #{text}\n" })
    described_class.attach_to(:acemq)
    example.run
  ensure
    described_class.detach_from(:acemq)
    ActiveSupport::LogSubscriber.logger = former
  end

  def tell(event, **payload)
    AceMQ::AMQP::Notifications.tell(event, **payload)
    out.string.lines.last
  end

  it "writes what people have to know as errors and warnings" do
    expect(tell(:retire, id: "a", exchange: "shop", routing_key: "placed", reason: "too large"))
      .to eq "ERROR acemq: outbox row a for shop/placed is retired, until acemq retry a: too large\n"
    expect(tell(:lease_lost, rows: 3)).to match(/\AWARN acemq: 3 rows were somebody else's/)
    expect(tell(:blocked, reason: "memory alarm")).to match(/\AWARN acemq: the broker has blocked publishing \(memory alarm\)/)
    expect(tell(:idempotency, key: "k-1", outcome: :taken_over)).to match(/\AWARN acemq: the work of "k-1" is begun again/)
    expect(tell(:idempotency, key: "k-1", outcome: :lost)).to match(/\AWARN acemq: the work of "k-1" was refused/)
  end

  it "does not say of what failed that it was done" do
    %i[add mark].each do |event|
      expect { AceMQ::AMQP::Notifications.around(event, marked: 1) { raise "the database is away" } }.to raise_error("the database is away")
    end
    expect(out.string).to eq ""
  end

  it "writes what is good to know, and what goes on all the time for who debugs" do
    expect(tell(:reconnect)).to eq "INFO acemq: connected to the broker again\n"
    expect(tell(:duplicate, key: "k-1")).to match(/\AINFO acemq: the work of "k-1" was done before/)
    expect(tell(:add, id: "a", exchange: "", routing_key: "q", bytes: 9)).to match(%r{\ADEBUG acemq: outbox add a for /q \(9 bytes, \d})
    records = Array.new(2) { AceMQ::AMQP::Patterns::OutboxRecord.new }
    expect(tell(:publish, records: records, confirmed: records.first(1))).to match(/\ADEBUG acemq: 1 of 2 messages confirmed/)
    expect(tell(:mark, marked: 1, failed: 0, held: 2, unsent: 3)).to match(/\ADEBUG acemq: 1 marked 0 failed 2 held 3 released/)
    expect(tell(:handle, queue: "q", id: "m", type: "t", attempt: 2, outcome: "retried"))
      .to match(/\ADEBUG acemq: q m \(t, attempt 2\) retried/)
  end

  it "says nothing of a look that found nothing, and of work that is done for the first time" do
    expect(tell(:idempotency, key: "k-1", outcome: :first)).to be_nil
    expect(tell(:claim, claimed: 0)).to be_nil
    expect(tell(:claim, claimed: 7)).to match(/\ADEBUG acemq: 7 rows claimed/)
  end
end
