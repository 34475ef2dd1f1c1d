# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordIdempotencyStore, "claims" do
  include AceMQ::SpecSupport::Keys

  subject(:store) { described_class.new }

  let(:another_store) { described_class.new }

  def transaction
    ActiveRecord::Base.transaction { yield ->(sql) { ActiveRecord::Base.connection.execute(sql) } }
  ensure
    ActiveRecord::Base.connection_pool.release_connection
  end

  on_each_database do
    %i[ours application].each do |origin|
      describe "in a table of origin #{origin}" do
        before(:context) { make_idempotency(origin) }
        before { empty(table) }

        include_examples "a store of keys"

        it "has no connection checked out afterwards" do
          store.claim("k")
          store.confirm("k")

          expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
        end
      end
    end

    describe "under concurrency" do
      before do
        make_idempotency
        empty(table)
      end

      it "gives a key of many claimers to one of them: fresh, stale, or confirmed" do
        fresh = Array.new(4) { |i| "fresh#{i}" }
        stale = Array.new(4) { |i| "stale#{i}" }
        done = Array.new(2) { |i| "done#{i}" }
        (stale + done).each { |key| store.claim(key) }
        done.each { |key| store.confirm(key) }
        stale.each { |key| age(key, 301) }

        answers = Hash.new { |hash, key| hash[key] = Queue.new }
        (fresh + stale + done).each { |key| answers[key] }
        Array.new(50) do
          Thread.new { (fresh + stale + done).shuffle.each { |key| answers[key] << described_class.new.claim(key) } }
        end.each(&:join)

        tallies = answers.transform_values { |queue| Array.new(queue.size) { queue.pop }.tally }
        expect(tallies.values_at(*fresh, *stale)).to all(eq(claimed: 1, in_progress: 49))
        expect(tallies.values_at(*done)).to all(eq(duplicate: 50))
      end
    end
  end

  describe "rows of other stores" do
    def write(key, state, recorded_at:, expires_at:, by: "host:1")
      execute("INSERT INTO #{table} (message_id, state, claimed_by, recorded_at, expires_at) " \
              "VALUES ('#{key}', '#{state}', '#{by}', #{recorded_at}, #{expires_at})")
    end

    on_each_database do
      before { make_idempotency(:application) }

      it "are judged right although the application's store writes the retention from the start" do
        day = sql_time(86_400)
        write("live", "CLAIMED", recorded_at: sql_time(-10), expires_at: day)
        write("stale", "CLAIMED", recorded_at: sql_time(-310), expires_at: day)
        write("done", "CONFIRMED", recorded_at: sql_time(-310), expires_at: day)
        write("Done: B", "CONFIRMED", recorded_at: sql_time(-310), expires_at: day)
        write("Live: B", "CLAIMED", recorded_at: sql_time(-10), expires_at: day)
        write("Stale: B", "CLAIMED", recorded_at: sql_time(-310), expires_at: day)

        expect(["live", "stale", "done", "Done: B", "Live: B", "Stale: B"].map { |key| store.claim(key) })
          .to eq %i[in_progress claimed duplicate duplicate in_progress claimed]
        expect([store.confirmed?("done"), store.confirmed?("Done: B")]).to eq [true, true]
      end

      it "are not mistaken for a key that they only resemble" do
        write("ABC", "CONFIRMED", recorded_at: sql_time(-1), expires_at: sql_time(86_400))

        expect(store.claim("abc")).not_to eq :duplicate
      end
    end

    on_each_database(:sqlite, :postgres) do
      before { make_idempotency(:family) }

      def text(seconds)
        "'#{(Time.now.utc + seconds).strftime("%Y-%m-%dT%H:%M:%S.%6NZ")}'"
      end

      it "are judged right as the family's libraries write them" do
        write("live", "CLAIMED", recorded_at: text(-10), expires_at: text(290))
        write("stale", "CLAIMED", recorded_at: text(-301), expires_at: text(-1))
        write("done", "CONFIRMED", recorded_at: text(-301), expires_at: text(100))
        write("over", "CONFIRMED", recorded_at: text(-301), expires_at: text(-1))

        expect(%w[live stale done over].map { |key| store.claim(key) }).to eq %i[in_progress claimed duplicate claimed]
        expect(store.purge_expired).to eq 0
      end

      it "are written so that those judge ours" do
        store.claim("k")
        expires_at = Time.parse("#{key_row("k")["expires_at"]} UTC".sub(/Z UTC|UTC UTC/, "UTC"))

        expect(expires_at - Time.now).to be_between(295, 301)
        expect(key_row("k")["expires_at"]).to match(/T.*Z\z/) if database == :sqlite
      end
    end
  end

  # Case 9.
  on_each_database(:postgres, :mariadb) do
    it "belong to their process: a forked child cannot settle what its parent has claimed, and claims on its own" do
      make_idempotency
      store.claim("k")
      ActiveRecord::Base.connection_pool.release_connection
      reader, writer = IO.pipe
      pid = fork do
        answers = [store.confirm("k"), store.forget("k"), store.claim("k"), store.claim("c"), store.confirm("c")]
        writer.write(answers.inspect)
        writer.close
        exit!(0)
      end
      writer.close
      Process.wait(pid)

      expect(reader.read).to eq [false, false, :in_progress, :claimed, true].inspect
      expect(store.confirm("k")).to be true
      expect(store.claim("c")).to eq :duplicate
    end
  end

  describe "with a model" do
    on_each_database(:sqlite) do
      it "uses its table" do
        make_idempotency(:ours, name: "handled_messages")
        model = Class.new(ActiveRecord::Base) { self.table_name = "handled_messages" }
        of_model = described_class.new(model: model)

        expect([of_model.table, of_model.claim("k"), of_model.size]).to eq ["handled_messages", :claimed, 1]
      end
    end
  end

  describe "what one execution remembers" do
    on_each_database(:sqlite) do
      before { make_idempotency }

      it "stays small, however many claims are never settled" do
        remembered = elsewhere do
          ActiveRecord::Base.transaction do
            1_100.times { |i| store.claim("k#{i}") }
          end
          ActiveRecord::Base.connection_pool.release_connection
          [Thread.current[AceMQ::AMQP::Patterns::ExecutionClaims::VARIABLE].last.size, store.confirm("k1099")]
        end

        expect(remembered).to eq [AceMQ::AMQP::Patterns::ExecutionClaims::LIMIT, true]
      end
    end
  end

  on_each_database do
    it "names a table that is not there" do
      nowhere = described_class.new(table: "acemq_nowhere")
      message = /table acemq_nowhere in the .* does not exist: .*acemq:install/

      expect { nowhere.check! }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
      expect { nowhere.claim("k") }.to raise_error(AceMQ::AMQP::ConfigurationError, message)
    end
  end

  it "names what is wrong when it is built" do
    expect { described_class.new(retention: 0) }.to raise_error(ArgumentError, /retention: must be seconds above 0/)
    expect { described_class.new(claim_timeout: "5") }.to raise_error(ArgumentError, /claim_timeout/)
    expect { described_class.new(table: "no name") }.to raise_error(ArgumentError, /is no table name/)
    expect { described_class.new(model: Object) }.to raise_error(ArgumentError, /model:/)
  end
end
