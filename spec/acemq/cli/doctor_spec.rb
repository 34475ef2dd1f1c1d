# frozen_string_literal: true

require "acemq/cli"
require "acemq/operations"

RSpec.describe "acemq doctor", :broker do
  on_each_database do |name|
    before(:context) do
      make_outbox
      connection { |db| db.drop_table(:acemq_idempotency, if_exists: true) } # of other examples
    end

    before do
      empty("acemq_outbox")
      AceMQ::Rails.connection = amqp
    end

    let(:amqp) { open_connection }
    let(:store) { AceMQ::AMQP::Patterns::ActiveRecordOutboxStore.new }

    # @return [Array<Hash>] what is not in order
    def troubles(*arguments)
      run = acemq("doctor", "--json", *arguments)
      @code = run.code
      run.json.reject { |finding| finding[:verdict] == "ok" }
    end

    it "finds nothing where nothing is wrong" do
      add("a", exchange: "", routing_key: new_queue(open_connection))
      run = acemq("doctor")

      expect(run.out.lines.grep_v(/^ok  /).join.strip).to eq "nothing to do"
      expect(run.out).to match(/^ok    versions: acemq_native .*Ruby/)
        .and match(/^ok    outbox acemq_outbox: claims walk along the index acemq_outbox_destination$/)
        .and match(/^ok    claim: /).and match(/^ok    isolation: /).and match(/^ok    clocks: /).and match(/^ok    broker: answers$/)
      expect(run.code).to eq 0
    end

    it "sees the plan of a claim on a long backlog" do
      ActiveRecord::Base.transaction { add(*Array.new(1_200) { |n| "p#{n}" }) }
      connection { |db| db.execute("ANALYZE #{"TABLE " if database == :mariadb}acemq_outbox") }

      expect(acemq("doctor").out).to match(/^ok    claim: is planned along acemq_outbox_destination$/)
    end

    it "names exchanges and queues that rows are addressed to and that are not there, and leaves nothing behind" do
      add("a", exchange: "spec.nowhere", routing_key: "x")
      add("b", exchange: "", routing_key: "spec.no.queue")
      add("c", exchange: "amq.topic", routing_key: "x")
      expect_any_instance_of(AceMQ::Operations::Doctor::Broker).to receive(:drop_probe).and_wrap_original do |original|
        @probe = original.receiver.instance_variable_get(:@probe)
        original.call
      end

      expect(troubles).to contain_exactly(
        { subject: "exchange spec.nowhere", verdict: "error", text: start_with("does not exist"), remedy: start_with("declare it") },
        { subject: "queue spec.no.queue", verdict: "error", text: start_with("does not exist"), remedy: start_with("declare it") }
      )
      expect(@code).to eq 1
      expect(open_connection.queue_exists?(@probe)).to be false
    end

    it "does not fail for exchanges and queues that are gone, and that nothing waits for" do
      add("a", exchange: "spec.nowhere", routing_key: "x")
      add("b", exchange: "", routing_key: "spec.no.queue")
      store.mark_published(%w[a b])

      expect(troubles.map { |found| found.values_at(:subject, :verdict, :text) }).to match [
        ["exchange spec.nowhere", "warning", /none waits for it now/], ["queue spec.no.queue", "warning", /none waits for it now/]
      ]
      expect(@code).to eq 0
    end

    it "says which destinations stand still, and what is retired" do
      allow(AceMQ::AMQP::Patterns::Backoff).to receive(:seconds).and_return(60)
      add("held", "retired", exchange: "amq.topic")
      store.claim(10).settle(held: [["held", "no queue is bound"]], failed: [["retired", "too large", true]])

      expect(troubles.map { |found| found.values_at(:subject, :verdict, :text) }).to include(
        ["destination amq.topic/order.placed", "error", "takes no messages, 1 rows wait: no queue is bound"],
        ["outbox acemq_outbox", "error", "1 rows are retired and will not be tried again"]
      )
    end

    it "looks first at the destinations that wait, and says when there were more" do
      stub_const("AceMQ::Operations::Doctor::OutboxWork::MOST", 2)
      add("a", "b", routing_key: "a", exchange: "amq.topic")
      add("z", routing_key: "z", exchange: "amq.topic")
      store.claim(10).settle(confirmed: %w[a b], held: [["z", "no queue is bound"]])
      add("c", routing_key: "c", exchange: "amq.topic")

      expect(troubles.map { |found| found.values_at(:subject, :text) })
        .to include(["destination amq.topic/z", /1 rows wait: no queue is bound/], ["outbox acemq_outbox", /more than 2 destinations/])
    end

    it "says that nobody relays, and that nobody purges" do
      add("a", exchange: "amq.topic", created_at: Time.now - 300)
      add("b", exchange: "amq.topic")
      store.mark_published("b")
      execute("UPDATE acemq_outbox SET published_at = #{sql_time(-31 * 86_400)} WHERE id = 'b'")

      expect(troubles.map { |found| found.values_at(:verdict, :text, :remedy) }).to match [
        ["error", /1 rows pending, the oldest written 30\d s ago, and nothing is being claimed: no relay runs, or .* no broker/,
         /start one where none runs \(acemq relay\); where one does, its log/],
        ["warning", "1 rows were published more than 30 days ago", /acemq purge --older-than 30d/]
      ]
    end

    it "says what a table of the application's own migration lacks" do
      make_outbox(:application, name: "old_outbox")
      found = troubles("--table", "old_outbox").select { |one| one[:subject] == "outbox old_outbox" }
      expect(found).to include(verdict: "warning", text: /no index that claims can walk along/, subject: "outbox old_outbox",
                               remedy: /acemq:install --existing/)
      next unless database == :mariadb

      texts = found.map { |one| one[:text] }
      expect(texts).to include(/body holds 65535 bytes, and the store takes 262144/, /id, exchange_name/)
      # From Rails 7 on, times have microseconds unless said otherwise.
      old = ActiveRecord.version < Gem::Version.new("7")
      expect(texts.grep(/created_at, published_at, locked_until have no microseconds/).any?).to be old
    end

    it "finds a table that is missing, and looks at the rest all the same" do
      expect(troubles("--table", "acemq_nowhere")).to match [
        { subject: "outbox acemq_nowhere", verdict: "error", text: /does not exist/, remedy: /acemq:install/ }
      ]
      expect(@code).to eq 1
    end

    it "looks at the table of keys where there is one, or where it is told of one" do
      make_idempotency
      AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.new.first_time?("expired")
      execute("UPDATE acemq_idempotency SET expires_at = #{sql_time(-5)}")
      expect(troubles).to match [include(subject: "idempotency acemq_idempotency", verdict: "warning", text: /1 keys are past/)]
      expect(@code).to eq 0

      expect(troubles("--idempotency-table", "no_keys")).to match [include(verdict: "error", text: /no_keys .* does not exist/)]
    ensure
      connection { |db| db.drop_table(:acemq_idempotency) }
      AceMQ::AMQP::Patterns::Database::TABLES.clear
    end

    it "says what a table of keys lacks that was made elsewhere" do
      connection do |db|
        db.drop_table(:old_keys, if_exists: true)
        db.create_table(:old_keys, id: false) do |t|
          t.string :message_id, null: false, limit: 255, primary_key: true
          t.string :state, null: false, limit: 16
          t.string :claimed_by, limit: 64
          t.datetime :recorded_at, null: false, precision: database == :sqlite ? nil : 0
          t.datetime :expires_at, null: false, precision: database == :sqlite ? nil : 0
        end
      end
      found = troubles("--idempotency-table", "old_keys").map { |one| one.values_at(:subject, :verdict, :text) }
      index = /no index by expires_at/
      lacking = { sqlite: [index], postgres: [/recorded_at, expires_at have no microseconds/, index],
                  mariadb: [/recorded_at, expires_at have no microseconds/, /message_id take texts that differ in case/, index] }
      expect(found).to match(lacking[database].map { |text| ["idempotency old_keys", "warning", text] })

      connection { |db| AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore.update_table(db, table: "old_keys") }
      AceMQ::AMQP::Patterns::Database::TABLES.clear
      expect(troubles("--idempotency-table", "old_keys")).to eq []
    end

    it "finds a broker that does not answer" do
      without_broker

      expect(troubles).to match [{ subject: "broker", verdict: "error", text: /refused/, remedy: /config.acemq.url/ }]
      expect(acemq("doctor").out).to match(/^FAIL  broker: .*\n        -> see whether it runs/)
    end

    it "sees clocks that differ" do
      allow_any_instance_of(AceMQ::AMQP::Patterns::Dialects::Base).to receive(:clock).and_return(Time.now.to_f - 90)

      expect(troubles).to match [include(subject: "clocks", verdict: "warning", text: /90\.\d s ahead of the database/)]
    end

    next if name == :sqlite

    it "finds a database that does not answer, and looks at the broker all the same" do
      expect(without_database { troubles }).to match [{ subject: "database", verdict: "error", text: /does not answer/,
                                                        remedy: /config.database.yml/ }]
      expect(@code).to eq 1
    end
  end

  on_each_database(:postgres) do
    # As a role that has no more than this on the outbox; roles are the server's, which others use too.
    def permitted(rights)
      role = "acemq_spec_#{Process.pid}"
      connection { |db| ["CREATE ROLE", "GRANT #{rights} ON acemq_outbox TO"].each { |statement| db.execute("#{statement} #{role}") } }
      AceMQ::SpecSupport::Database.connect(:postgres, variables: { role: role })
      yield
    ensure
      AceMQ::SpecSupport::Database.connect(:postgres)
      connection { |db| ["DROP OWNED BY", "DROP ROLE"].each { |statement| db.execute("#{statement} #{role}") } }
    end

    it "goes on where the outbox may not be read, and says that the database refused" do
      make_outbox
      make_idempotency
      AceMQ::Rails.connection = open_connection
      permitted("INSERT") do
        run = acemq("doctor")

        expect(run.out).to match(/^FAIL  outbox acemq_outbox: cannot be looked at: the database refused: .*permission denied.*\n +-> see/)
          .and match(/^FAIL  idempotency acemq_idempotency: cannot be looked at: the database refused: .*permission denied/)
          .and match(/^ok    database: PostgreSQL/).and match(/^ok    broker: answers$/)
        expect(run.out.scan("outbox acemq_outbox: cannot").size).to eq 1
        expect(run.code).to eq 1
        expect(acemq("status", "--json")).to have_attributes(code: 69, json: { error: match(/\Athe database refused: .*denied/), exit: 69 })
      end
    ensure
      connection { |db| db.drop_table(:acemq_idempotency) }
      AceMQ::AMQP::Patterns::Database::TABLES.clear
    end

    it "sees sessions that are stricter than claims can use" do
      make_outbox
      AceMQ::Rails.connection = open_connection
      connection { |db| db.execute("ALTER DATABASE #{db.current_database} SET default_transaction_isolation TO 'serializable'") }
      AceMQ::SpecSupport::Database.connect(:postgres)

      expect(acemq("doctor").out).to match(/^WARN  isolation: serializable.*\n +-> let the relay's sessions use read committed/)
    ensure
      connection { |db| db.execute("ALTER DATABASE #{db.current_database} RESET default_transaction_isolation") }
      AceMQ::SpecSupport::Database.connect(:postgres)
    end
  end
end
