# frozen_string_literal: true

require "acemq/rails"

RSpec.describe "the generator acemq:consumer" do
  after { FileUtils.rm_rf(@folder) }

  def read(path)
    File.read(File.join(@folder, path))
  end

  it "writes a consumer that handles each message once, and a spec of it" do
    @folder = generate("consumer", "parcels_consumer", "--queue", "shop.parcels", files: { "spec/rails_helper.rb" => "" })
    stub_const("ActiveRecord::Base", Class.new { def self.transaction = yield })
    load File.join(@folder, "app/consumers/parcels_consumer.rb")
    stub_const("ParcelsConsumer::STORE", AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new)
    message = AceMQ::AMQP::Message.new(payload: {}, envelope: AceMQ::AMQP::Envelope.new(id: "m-1", type: "a"))

    expect(ParcelsConsumer.queue).to eq "shop.parcels"
    expect(ParcelsConsumer.retries).to have_attributes(max_attempts: 5, jitter_factor: 0.2)
    expect(Array.new(2) { ParcelsConsumer.new.call(message) }).to all(be_accept)
    expect(read("spec/consumers/parcels_consumer_spec.rb")).to include "RSpec.describe ParcelsConsumer do"
  end

  it "confirms keys of another database in that database's transaction" do
    own = { "app/models/handled_message.rb" => "class HandledMessage < EventsRecord\nend\n" }
    @folder = generate("consumer", "payments", files: own)

    expect(read("app/consumers/payments_consumer.rb")).to match(/^      HandledMessage\.transaction do # the keys' own database/)
  end

  it "follows namespaces, and the application's own store and tests" do
    own = { "app/models/active_record_idempotency_store.rb" => "", "test/test_helper.rb" => "" }
    @folder = generate("consumer", "billing/invoices", files: own)

    expect(read("app/consumers/billing/invoices_consumer.rb"))
      .to include("class Billing::InvoicesConsumer < AceMQ::Rails::Consumer", "STORE = ActiveRecordIdempotencyStore.new",
                  "queue \"#{File.basename(@folder).tr("^A-Za-z0-9_-", "")}.billing.invoices\"")
    expect(read("test/consumers/billing/invoices_consumer_test.rb")).to include "class Billing::InvoicesConsumerTest"
  end
end
