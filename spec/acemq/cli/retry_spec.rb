# frozen_string_literal: true

require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq retry" do
  on_each_database do |name|
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      without_broker # which it does not need
      add("a", "b", routing_key: "one")
      add("c", routing_key: "two")
      add("d", exchange: "", routing_key: "one")
      reasons = { "a" => "too large", "b" => "bad name", "c" => "too large for it", "d" => "bad name" }
      store.claim(10).settle(failed: reasons.map { |id, reason| [id, reason, true] })
    end

    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }

    def still_retired
      store.retired.map(&:id)
    end

    it "brings back the rows named" do
      expect(acemq("retry", "a", "c"))
        .to have_attributes(code: 0, out: "a  shop/one  too large\nc  shop/two  too large for it\n2 rows brought back\n")
      expect(still_retired).to eq %w[b d]
    end

    it "brings back those of a destination, of a reason, or all" do
      expect(acemq("retry", "--destination", "one").code).to eq 0
      expect(still_retired).to eq %w[c]
      expect(acemq("retry", "--error", "no such reason").out).to eq "0 rows brought back\n"
      expect(acemq("retry", "--error", "too large").out).to include "c  shop/two"
      expect(still_retired).to be_empty
    end

    it "tells the exchanges of a routing key apart" do
      acemq("retry", "--destination", "shop/one")
      expect(still_retired).to eq %w[c d]
      acemq("retry", "--destination", "/one", "--error", "bad")
      expect(still_retired).to eq %w[c]
    end

    it "brings back all of them, to be tried at once" do
      acemq("retry", "--all")

      expect(still_retired).to be_empty
      expect(claimed_ids).to eq %w[a b c d]
    end

    it "only lists them with --dry-run" do
      run = acemq("retry", "--all", "--dry-run")

      expect(run.out).to include("b  shop/one  bad name", "4 rows would be brought back")
      expect(still_retired).to eq %w[a b c d]
    end

    it "says it to programs, and ends with 1 for ids that are not retired" do
      run = acemq("retry", "a", "x", "--json")

      expect(run.code).to eq 1
      expect(run.json).to eq(retried: 1, dry_run: false, not_retired: ["x"],
                             rows: [{ outbox: "acemq_outbox", id: "a", exchange: "shop", routing_key: "one", error: "too large" }])
      expect(acemq("retry", "x").out).to eq "0 rows brought back\nnot retired: x\n"
    end

    it "does not guess" do
      expect(acemq("retry")).to have_attributes(code: 64, err: /needs ids, --destination, --error or --all/)
    end

    it "takes no misspelt option for an id, and brings nothing back" do
      expect(acemq("retry", "a", "--dryrun")).to have_attributes(code: 64, err: /--dryrun/, out: "")
      expect(acemq("retry", "a", "-n").code).to eq 64
      expect(acemq("retry", "a", "--dryrun=1", "--json")).to have_attributes(code: 64, json: include(exit: 64))
      expect(still_retired).to eq %w[a b c d]
    end

    it "ends with 78 without its table" do
      expect(acemq("retry", "--all", "--table", "acemq_nowhere").code).to eq 78
    end

    next if name == :sqlite

    it "ends with 69 without a database" do
      expect(without_database { acemq("retry", "--all", "--json") }).to have_attributes(code: 69, json: include(exit: 69))
    end
  end
end
