# frozen_string_literal: true

require_relative "application"

# An application's own idempotency table and the consumer that uses it, unchanged.
RSpec.describe PaymentsConsumer do
  let(:message) { message_with("m-1", "order_id" => "A-1", "amount_cents" => 1299) }

  before { allow(Payments).to receive(:charge!) }

  def message_with(id, payload)
    AceMQ::AMQP::Message.new(
      payload: payload,
      envelope: AceMQ::AMQP::Envelope.new(id: id, type: "payment.due.v1")
    )
  end

  # What the application's own spec says.
  it "charges once however many times the broker delivers it" do
    store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
    consumer = described_class.new
    stub_const("#{described_class}::STORE", store)

    3.times { expect(consumer.call(message)).to be_accept }

    expect(Payments).to have_received(:charge!).once
  end

  it "declares its queue and its retries" do
    expect(described_class.queue).to eq "shop.payments"
    expect(described_class.retries).to have_attributes(max_attempts: 5, initial_delay: 1.0, max_delay: 300.0)
  end

  on_each_database(:sqlite, :postgres) do
    before(:context) do
      HandwrittenApplication.drop
      HandwrittenApplication.migrate
    end

    after(:context) { HandwrittenApplication.drop }
    after { HandledMessage.delete_all }

    before { stub_const("PaymentsConsumer::STORE", store) }

    let(:store) { ActiveRecordIdempotencyStore.new }
    let(:consumer) do
      # The wrapper is built by the first message, and says then what such a store cannot tell.
      described_class.new.tap do |consumer|
        expect { consumer.call(message_with("warm-up", {})) }.to output(/first_time\? but not claim/).to_stderr
      end
    end

    def state_of(key)
      HandledMessage.find_by(message_id: key)&.state
    end

    it "charges once and confirms the key" do
      3.times { expect(consumer.call(message)).to be_accept }

      expect(Payments).to have_received(:charge!).with("A-1", 1299).once
      expect(state_of("m-1")).to eq "CONFIRMED"
    end

    it "forgets the key when the handler raises, so that the retry runs" do
      consumer
      allow(Payments).to receive(:charge!).and_raise("declined")
      expect { consumer.call(message) }.to raise_error("declined")
      expect(state_of("m-1")).to be_nil

      allow(Payments).to receive(:charge!)
      expect(consumer.call(message)).to be_accept
      expect(state_of("m-1")).to eq "CONFIRMED"
    end

    it "takes a stale claim over, and never a confirmed one" do
      store.first_time?("m-1")
      HandledMessage.where(message_id: "m-1").update_all(recorded_at: 10.minutes.ago)
      expect(consumer.call(message)).to be_accept
      expect(Payments).to have_received(:charge!).with("A-1", 1299).once

      HandledMessage.where(message_id: "m-1").update_all(recorded_at: 10.minutes.ago)
      expect(consumer.call(message)).to be_accept
      expect(Payments).to have_received(:charge!).with("A-1", 1299).once
    end

    it "retries while the database cannot be asked" do
      consumer
      allow(store).to receive(:first_time?).and_raise(ActiveRecord::ConnectionNotEstablished, "no database")

      expect(consumer.call(message)).to be_retry
      expect(Payments).not_to have_received(:charge!).with("A-1", 1299)
    end

    it "guards the event instead of the message by a key of its own" do
      handler = quietly do
        AceMQ::AMQP::Patterns.idempotent(store, key: ->(m) { "charge:#{m.payload["order_id"]}" }) do |m|
          Payments.charge!(m.payload["order_id"], m.payload["amount_cents"])
          AceMQ::AMQP::Ack.accept
        end
      end
      handler.call(message)
      handler.call(message_with("m-2", "order_id" => "A-1", "amount_cents" => 1299))

      expect(Payments).to have_received(:charge!).once
      expect(state_of("charge:A-1")).to eq "CONFIRMED"
    end

    it "makes work and key one event when the handler confirms in its own transaction" do
      handler = quietly do
        AceMQ::AMQP::Patterns.idempotent(store) do |m|
          ActiveRecord::Base.transaction do
            Payments.charge!(m.payload["order_id"], m.payload["amount_cents"])
            store.confirm(m.envelope.id)
          end
          AceMQ::AMQP::Ack.accept
        end
      end
      2.times { expect(handler.call(message)).to be_accept }

      expect(Payments).to have_received(:charge!).once
      expect(state_of("m-1")).to eq "CONFIRMED"
    end

    it "purges what is past its retention" do
      consumer.call(message)
      HandledMessage.where(message_id: "m-1").update_all(expires_at: 1.minute.ago)

      expect(store.purge_expired).to eq 1
    end

    def quietly
      made = nil
      expect { made = yield }.to output.to_stderr
      made
    end
  end
end
