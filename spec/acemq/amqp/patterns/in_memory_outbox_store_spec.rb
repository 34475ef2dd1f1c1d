# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::InMemoryOutboxStore do
  subject(:store) { described_class.new }

  it "gives what is pending oldest first, and by id where times are equal" do
    now = Time.now
    store.add(outbox_record("b", created_at: now))
    store.add(outbox_record("a", created_at: now))
    store.add(outbox_record("c", created_at: now - 60))

    expect(store.pending.map(&:id)).to eq %w[c a b]
    expect(store.pending(2).map(&:id)).to eq %w[c a]
  end

  it "keeps the first record of an id" do
    expect(store.add(outbox_record("a", body: "first", created_at: Time.now))).to be_nil
    store.add(outbox_record("a", body: "second", created_at: Time.now))

    expect(store.pending.map(&:body)).to eq ["first"]
  end

  it "forgets what was published, and ignores ids that it does not know" do
    store.add(outbox_record("a", created_at: Time.now))

    expect(store.mark_published("unknown")).to be_nil
    expect { store.mark_published("a") }.to change(store, :size).from(1).to(0)
  end

  it "refuses a record without an id" do
    expect { store.add(outbox_record("")) }.to raise_error(ArgumentError, /needs an id/)
    expect { store.add(outbox_record(nil)) }.to raise_error(ArgumentError, /needs an id/)
  end
end
