# frozen_string_literal: true

# Beside an open snapshot every claim on PostgreSQL would step over all that was published since.
RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "looking no further back than there is anything" do
  subject(:store) { described_class.new(lease: 30) }

  let(:water) { AceMQ::AMQP::Patterns::LowWater }
  let(:hour_ago) { Time.now - 3600 }

  def statements
    seen = []
    listener = ActiveSupport::Notifications.subscribe("sql.active_record") { |*, event| seen << event[:sql] }
    yield
    seen
  ensure
    ActiveSupport::Notifications.unsubscribe(listener)
  end

  def claim_and_give_back(**options)
    claim = store.claim(100, **options)
    claim.settle(unsent: claim.records.map(&:id))
    claim.records.map(&:id)
  end

  def bounded?(**options)
    statements { claim_and_give_back(**options) }.any?(/created_at >= (s\.since|')/)
  end

  # As if every claim were slow, and what it makes known were not forgotten.
  def slow_claims
    stub_const("#{water}::SLOW", 0)
    stub_const("#{water}::KEPT", 1e9)
  end

  # What is asked of the database, as `dialect.low_water` answers it.
  def question(&answer)
    dialect = AceMQ::AMQP::Patterns::Dialects::PostgreSQL
    asked = dialect.instance_method(:low_water)
    allow_any_instance_of(dialect).to receive(:low_water) { |db, *arguments| answer.call(db, -> { asked.bind_call(db, *arguments) }) }
  end

  # Other databases of the server may have transactions that take a moment.
  def know_how_far(**options)
    slow_claims
    eventually do
      AceMQ::AMQP::Patterns::Database::TABLES.clear
      2.times { claim_and_give_back(**options) }
      expect(bounded?(**options)).to be true
    end
    # From here on nothing is asked because of a slow claim.
    stub_const("#{water}::SLOW", 1e9)
    claim_and_give_back(**options)
  end

  def forget
    allow(AceMQ::AMQP::Clock).to(receive(:now).and_wrap_original { |now| now.call + 1e12 })
  end

  on_each_database(:postgres) do
    before { make_outbox }

    it "asks for nothing while claims are quick" do
      stub_const("#{water}::SLOW", 3600)
      add("a")

      expect(statements { 3.times { claim_and_give_back } }.grep(/txid_current/)).to eq []
    end

    it "does not ask every time where there are too many destinations" do
      slow_claims
      stub_const("#{water}::AGAIN", 1e9)
      stub_const("#{water}::KNOWN", 3)
      4.times { |n| add(n.to_s, routing_key: n.to_s) }
      asked = statements { 4.times { expect(claim_and_give_back).to eq %w[0 1 2 3] } }

      expect(asked.grep(/txid_current/).size).to eq 1
    end

    %i[destination strict none].each do |ordering|
      it "passes over what is dated back, ordering #{ordering.inspect}, until it looks at everything again" do
        add("new")
        know_how_far(ordering: ordering)
        add("dated back", created_at: hour_ago)
        expect(claim_and_give_back(ordering: ordering)).to eq ["new"]

        forget
        expect(claim_and_give_back(ordering: ordering)).to eq ["dated back", "new"]
      end
    end

    describe "new destinations" do
      known = { "b" => %w[k m], "d" => ["k"] }
      anew = { "before all" => %w[a k], "before the first key" => %w[b j], "with an empty key" => ["b", ""], "between two keys" => %w[b l],
               "after the last key" => %w[b z], "of an exchange in between" => %w[c k], "before the other exchange's" => %w[d j],
               "after all" => %w[d l], "after all exchanges" => %w[e k] }

      before do
        known.each { |exchange, keys| keys.each { |key| add("#{exchange}.#{key}", exchange: exchange, routing_key: key) } }
        know_how_far
      end

      anew.each do |where, (exchange, key)|
        it "are found #{where}" do
          add("new", exchange: exchange, routing_key: key)

          expect(claim_and_give_back).to match_array(%w[b.k b.m d.k new])
        end
      end

      it "are all found soon, and several in one place too" do
        anew.each_value { |exchange, key| 5.times { |n| add("#{exchange}.#{key}.#{n}", exchange: exchange, routing_key: key + n.to_s) } }

        eventually { expect(claim_and_give_back.size).to eq 48 }
        expect(bounded?).to be true
      end
    end

    it "finds everything from nothing at all, and what comes again where everything was published" do
      know_how_far
      add("a", "b", routing_key: "one")
      expect(claim_and_give_back).to eq %w[a b]
      know_how_far
      store.claim(2).settle(confirmed: %w[a b])
      expect(claim_and_give_back).to eq []
      add("c", routing_key: "one")

      expect(claim_and_give_back).to eq ["c"]
    end

    # Whatever is added and held, in whatever batches: all of it goes out, and in order within a destination.
    it "claims like one that looks everywhere" do
      slow_claims
      random = Random.new(RSpec.configuration.seed)
      order = Hash.new { |hash, key| hash[key] = [] }
      out = Hash.new { |hash, key| hash[key] = [] }
      write = lambda do |number|
        name = [%w[a b c].sample(random: random), %w[k l m n].sample(random: random)]
        add(number.to_s, exchange: name[0], routing_key: name[1], created_at: Time.now + (number / 1e5))
        order[name] << number.to_s
      end
      publish = lambda do
        claim = store.claim(random.rand(1..6))
        sent = claim.records.take(random.rand(0..6))
        claim.settle(confirmed: sent.map(&:id), unsent: claim.records.drop(sent.size).map(&:id))
        sent.each { |record| out[[record.exchange, record.routing_key]] << record.id }
      end
      150.times { |number| random.rand < 0.6 ? write.call(number) : publish.call }
      eventually do
        publish.call
        expect(store.pending_count).to eq 0
      end

      expect(out).to eq order
      expect(bounded?).to be true
    end

    it "finds what has been held for long" do
      add("new", routing_key: "elsewhere")
      add("held", created_at: hour_ago)
      execute("UPDATE acemq_outbox SET locked_until = #{sql_time(600)} WHERE id = 'held'")
      know_how_far
      expect(claim_and_give_back).to eq ["new"]

      execute("UPDATE acemq_outbox SET locked_until = #{sql_time(-1)} WHERE id = 'held'")
      expect(claim_and_give_back).to eq %w[held new]
    end

    it "finds what was brought back, at once" do
      add("new")
      add("retired", created_at: hour_ago)
      execute("UPDATE acemq_outbox SET attempts = 10 WHERE id = 'retired'")
      know_how_far
      store.retry!("retired")

      expect(claim_and_give_back).to eq %w[retired new]
    end

    it "finds what is brought back in a transaction that is open for a while" do
      add("new")
      add("retired", created_at: hour_ago)
      execute("UPDATE acemq_outbox SET attempts = 10 WHERE id = 'retired'")
      know_how_far
      ActiveRecord::Base.transaction do
        store.retry!("retired")
        3.times { Thread.new { claim_and_give_back }.join }
      end

      expect(claim_and_give_back).to eq %w[retired new]
    end

    # What is undone was never done: an answer from inside knows it otherwise.
    ["a transaction", "a savepoint"].each do |what|
      it "learns nothing in #{what} that publishes, and is undone" do
        slow_claims
        stub_const("#{water}::AGAIN", 1e9)
        add("old", created_at: hour_ago)
        undone = lambda do
          ActiveRecord::Base.transaction(requires_new: true) do
            store.claim(1).settle(confirmed: ["old"])
            5.times { claim_and_give_back }
            raise ActiveRecord::Rollback
          end
        end
        what == "a savepoint" ? ActiveRecord::Base.transaction { undone.call } : undone.call
        add("young")

        expect(claim_and_give_back).to eq %w[old young]
      end
    end

    it "finds what was brought back while somebody asked in an older transaction" do
      slow_claims
      stub_const("#{water}::AGAIN", 1e9)
      add("new")
      add("retired", created_at: hour_ago)
      execute("UPDATE acemq_outbox SET attempts = 10 WHERE id = 'retired'")
      begun = Thread::Queue.new
      written = Thread::Queue.new
      asked = Thread::Queue.new
      asking = Thread.new do
        ActiveRecord::Base.transaction do
          execute("CREATE TEMPORARY TABLE drawn (number integer) ON COMMIT DROP") # which takes the number of a transaction
          begun << true
          written.pop
          5.times { claim_and_give_back }
          asked << true
        end
      end
      begun.pop
      ActiveRecord::Base.transaction do
        store.retry!("retired")
        written << true
        asked.pop
      end
      asking.join

      expect(claim_and_give_back).to eq %w[retired new]
    end

    it "finds what another store with a higher ceiling of attempts may claim" do
      patient = described_class.new(lease: 30, max_attempts: 20)
      add("old", created_at: hour_ago)
      add("young")
      execute("UPDATE acemq_outbox SET attempts = 15 WHERE id = 'old'")
      know_how_far

      expect(patient.claim(100).records.map(&:id)).to eq %w[old young]
    end

    it "finds what is in the table of that name on another search path" do
      execute("CREATE SCHEMA other")
      execute("CREATE TABLE other.acemq_outbox (LIKE acemq_outbox INCLUDING ALL)")
      add("old", created_at: hour_ago)
      execute("INSERT INTO other.acemq_outbox SELECT * FROM acemq_outbox")
      execute("DELETE FROM acemq_outbox")
      add("new")
      know_how_far
      ActiveRecord::Base.connection_pool.with_connection do |db|
        db.schema_search_path = "other"
        expect(claim_and_give_back).to eq ["old"]
      ensure
        db.schema_search_path = "public"
        db.execute("DROP SCHEMA other CASCADE")
      end
    end

    it "does not ask while leases run" do
      stub_const("#{water}::SLOW", 0)
      add("a")
      claim_and_give_back
      found = nil
      question do |db, answer|
        found = db.rows("SELECT COUNT(*) FROM acemq_outbox WHERE locked_by IS NOT NULL", "spec").dig(0, 0).to_i
        answer.call
      end
      3.times { claim_and_give_back(ordering: :none) }

      expect(found).to eq 0
    end

    it "asks once for all threads" do
      slow_claims
      add("a")
      claim_and_give_back
      asked = Thread::Queue.new
      answered = Thread::Queue.new
      question do
        asked << true
        answered.pop
        nil
      end
      asking = Thread.new { claim_and_give_back }
      asked.pop
      3.times { claim_and_give_back }
      answered << true
      asking.join

      expect(asked).to be_empty
    end

    it "has nothing to do with columns whose texts have an order of their own" do
      execute('ALTER TABLE acemq_outbox ALTER routing_key TYPE varchar(255) COLLATE "und-x-icu"')
      AceMQ::AMQP::Patterns::Database::TABLES.clear
      slow_claims
      add("a")

      4.times { expect(bounded?).to be false }
    end

    it "has nothing to do with times that are shown twice when clocks go back" do
      settings = ActiveRecord.respond_to?(:default_timezone) ? ActiveRecord : ActiveRecord::Base
      allow(settings).to receive(:default_timezone).and_return(:local)
      slow_claims
      add("a")

      4.times { expect(bounded?).to be false }
    end

    ["infinity", "0044-03-15 BC"].each do |time|
      it "claims all the same beside a row of the time #{time}" do
        slow_claims
        add("a")
        add("out of time", routing_key: "z")
        execute("UPDATE acemq_outbox SET created_at = '#{time}', locked_until = #{sql_time(600)} WHERE id = 'out of time'")

        5.times { expect(claim_and_give_back).to eq ["a"] }
        expect(bounded?).to be false
      end
    end

    it "keeps an answer that took long for a minute at most" do
      slow_claims
      add("new")
      know_how_far
      add("dated back", created_at: hour_ago)
      expect(claim_and_give_back).to eq ["new"]
      allow(AceMQ::AMQP::Clock).to(receive(:now).and_wrap_original { |now| now.call + 61 })

      expect(claim_and_give_back).to eq ["dated back", "new"]
    end

    it "asks again for the sake of what is behind a new destination that is held" do
      add("m", routing_key: "m")
      know_how_far
      add("x1", routing_key: "x1")
      add("x2", routing_key: "x2")
      execute("UPDATE acemq_outbox SET locked_until = #{sql_time(600)} WHERE id = 'x1'")

      eventually { expect(claim_and_give_back).to match_array %w[m x2] }
      expect(bounded?).to be true
    end

    it "finds what a transaction wrote that was open all the while" do
      slow_claims
      written = Thread::Queue.new
      commit = Thread::Queue.new
      writer = Thread.new do
        ActiveRecord::Base.transaction do
          add("late", created_at: hour_ago)
          written << true
          commit.pop
        end
      end
      written.pop
      5.times { claim_and_give_back }
      commit << true
      writer.join

      expect(claim_and_give_back).to eq ["late"]
    end
  end

  on_each_database(:mariadb, :sqlite) do
    before { make_outbox }

    it "has no need of it" do
      slow_claims
      add("a")

      3.times { expect(bounded?).to be false }
    end
  end
end
