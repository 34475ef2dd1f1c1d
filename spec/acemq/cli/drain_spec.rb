# frozen_string_literal: true

require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq drain", :broker do
  on_each_database do |name|
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      AceMQ::Rails.connection = open_connection
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }
    let(:queue) { new_queue(open_connection) }

    it "publishes the backlog, says how far it is, and ends" do
      add(*Array.new(25) { |n| format("%02d", n) }, exchange: "", routing_key: queue)
      run = acemq("drain", "--batch", "10")

      expect(run.code).to eq 0
      expect(run.out).to match(%r{\Aacemq_outbox: 25 published, 0 left \(100 %\), \d+/s\n\z})
      expect(ids_in(open_connection, queue)).to eq(Array.new(25) { |n| format("%02d", n) })
      expect(store.pending_count).to eq 0
    end

    it "says each step to programs" do
      add("a", "b", exchange: "", routing_key: queue)
      run = acemq("drain", "--json", "--batch", "1")
      steps = run.out.lines.map { |line| JSON.parse(line, symbolize_names: true) }

      expect(run.code).to eq 0
      expect(steps.map { |step| step.values_at(:published, :left, :percent, :done) })
        .to eq [[1, 1, 50.0, false], [2, 0, 100.0, false], [2, 0, 100.0, true]]
    end

    it "ends with 0 where there is nothing" do
      expect(acemq("drain")).to have_attributes(code: 0, out: %r{0 published, 0 left \(100 %\), 0/s})
    end

    next if name == :mariadb

    it "ends with 75 when the rest takes nothing, and says why" do
      add("a", exchange: "", routing_key: queue)
      add("b", exchange: "", routing_key: "nobody.consumes.this")
      run = acemq("drain", "--patience", "0.6s")

      expect(run.code).to eq 75
      expect(run.out).to match(/1 published, 1 left \(50 %\).*waiting: .*no queue/)
      expect(row("b")["attempts"].to_i).to be < 3 # it honours the backoff
    end

    it "ends with 75 when time is up" do
      add("b", exchange: "", routing_key: "nobody.consumes.this")

      expect(acemq("drain", "--timeout", "0.3s").code).to eq 75
    end

    it "ends with 69 without a broker, and charges nobody" do
      without_broker
      add("a", exchange: "", routing_key: queue)
      run = acemq("drain", "--patience", "0.6s", "--json")

      expect(run.code).to eq 69
      expect(run.json).to match(hash_including(published: 0, left: 1, error: /refused/, done: false))
      expect(charged).to be_empty
    end

    it "ends with 78 without its table" do
      expect(acemq("drain", "--table", "acemq_nowhere")).to have_attributes(code: 78, err: /acemq_nowhere .* does not exist/)
    end

    next if name == :sqlite

    it "ends with 69 without a database" do
      expect(without_database { acemq("drain") }).to have_attributes(code: 69, err: /the database does not answer/)
    end
  end
end
