# frozen_string_literal: true

require "tmpdir"
require_relative "chaos/child"

# Many at one table, and some of them die.
RSpec.describe "A crowd at one outbox" do
  long = ENV["ACEMQ_LONG"] == "1"
  seconds = long ? 60 : 4

  # Whoever marks a row that is marked already gets an error for it.
  def forbid_marking_twice
    statements = {
      postgres: ["CREATE OR REPLACE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql " \
                 "AS 'BEGIN RAISE EXCEPTION ''marked twice''; END'",
                 "CREATE TRIGGER twice BEFORE UPDATE ON acemq_outbox FOR EACH ROW WHEN " \
                 "(OLD.published_at <> NEW.published_at) EXECUTE FUNCTION twice()"],
      mariadb: ["CREATE TRIGGER twice BEFORE UPDATE ON acemq_outbox FOR EACH ROW IF OLD.published_at <> NEW.published_at " \
                "THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'marked twice'; END IF"],
      sqlite: ["CREATE TRIGGER twice BEFORE UPDATE ON acemq_outbox WHEN OLD.published_at <> NEW.published_at " \
               "BEGIN SELECT RAISE(ABORT, 'marked twice'); END"]
    }
    connection { |db| statements.fetch(database).each { |sql| db.execute(sql) } }
  end

  # Lines by destination, in order.
  def noted(file)
    path = File.join(folder, file)
    lines = File.exist?(path) ? File.readlines(path).map(&:split) : []
    lines.group_by(&:first).transform_values { |found| found.map { |_, n| n.to_i } }
  end

  # @return [Hash] for connections on which nobody waits for a lock
  def impatient
    limit = { postgres: { variables: { lock_timeout: "2s" } }, mariadb: { variables: { innodb_lock_wait_timeout: 2 } },
              sqlite: { timeout: 10_000 } }
    AceMQ::SpecSupport::Database.config(database).merge(limit.fetch(database))
  end

  on_each_database do
    let(:folder) { Dir.mktmpdir }

    after { FileUtils.rm_rf(folder) }

    it "keeps order and limits, marks once and makes no writer wait, whoever is killed, for #{seconds} s" do
      make_outbox
      forbid_marking_twice
      connection { |db| db.execute("PRAGMA journal_mode = WAL") } if database == :sqlite
      settings = { seconds: seconds, database: impatient, folder: folder, relays: 4, writers: 8, limit: 40, lease: 1.5 }
      output = File.join(folder, "output")
      crowd = AceMQ::Chaos::Child.new(File.join(__dir__, "crowd/hands.rb"), settings, output: output, errors: output)
      cleanups << -> { crowd.kill }

      expect(crowd.wait(seconds + 60)).to be_success, -> { File.read(output) }
      errors = File.join(folder, "errors")
      expect(File.exist?(errors) ? File.readlines(errors) : []).to eq []
      written = noted("written")
      expect(written.size).to eq 24
      expect(noted("published").transform_values(&:uniq)).to eq written
      expect(outbox.pending_count).to eq 0
    end
  end

  on_each_database(:postgres, :mariadb) do
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:lease) { 2 }
    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }
    let(:ids) { Array.new(50) { |n| format("k-%02d", n) } }
    let(:survivor) { new_relay(amqp, interval: 0.1) }

    def put_all
      ActiveRecord::Base.transaction { ids.each { |id| put(id, to: queue) } }
    end

    it "has the rows of a relay that is killed out within its lease and 2 s" do
      put_all
      victim = relay_process(failpoints: "after_claim=stop#1", store: { lease: lease }, confirm_timeout: 1)
      eventually(20) { expect(leased.size).to eq 50 }
      survivor.start
      victim.kill

      eventually(lease + 2) { expect(marked.size).to eq 50 }
      expect(ids_in(amqp, queue)).to eq ids
      expect(charged).to be_empty
    end

    it "has those of one that is closed out at once" do
      proxy = new_proxy
      relay = new_relay(open_connection(proxy.url(broker.url)), interval: 0.1)
      holding_answers(proxy) do
        put_all
        relay.start
        eventually { expect(leased.size).to eq 50 }
        survivor.start
        relay.close(timeout: 1)

        eventually(2) { expect(marked.size).to eq 50 }
      end
      expect(ids_in(amqp, queue).uniq).to match_array(ids)
    end
  end
end
