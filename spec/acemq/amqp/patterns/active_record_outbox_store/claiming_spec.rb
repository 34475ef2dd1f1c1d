# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "claiming" do
  subject(:store) { described_class.new(lease: 30, max_payload: nil) }

  let(:other) { described_class.new(lease: 30) }

  # Moves the end of a lease or a pause into the past.
  def expire(*ids)
    execute("UPDATE acemq_outbox SET locked_until = #{sql_time(-1)} " \
            "WHERE id IN (#{ids.map { |id| "'#{id}'" }.join(", ")}) AND locked_until IS NOT NULL")
  end

  def back_off(id, seconds: 60)
    execute("UPDATE acemq_outbox SET locked_by = NULL, locked_until = #{sql_time(seconds)} WHERE id = '#{id}'")
  end

  def lease_to(somebody, id, seconds: 60)
    execute("UPDATE acemq_outbox SET locked_by = '#{somebody}', locked_until = #{sql_time(seconds)} WHERE id = '#{id}'")
  end

  def two(number)
    number.to_s.rjust(2, "0")
  end

  shared_examples "a claim" do
    it "is empty when nothing is pending" do
      claim = store.claim(10)

      expect(claim.records).to eq []
      expect(claim).to be_empty
      expect(claim).not_to be_full
      expect(claim.renew).to eq 0
    end

    it "leases the oldest records, up to its limit, and says whether there may be more" do
      add("a", "b", "c")

      claim = store.claim(2)
      expect(claim.records.map(&:id)).to eq %w[a b]
      expect(claim).to be_full
      expect(row("a")["locked_by"]).to eq claim.token
      expect(row("c")["locked_by"]).to be_nil
    end

    it "leaves what another claim has leased to it" do
      add("a", routing_key: "one")
      expect(claimed_ids).to eq ["a"]
      add("b", routing_key: "two")

      expect(claimed_ids(on: other)).to eq ["b"]
      expect(claimed_ids(on: other)).to eq []
    end

    it "takes over when a lease has run out" do
      add("a")
      store.claim(1)
      expire("a")

      expect(claimed_ids(on: other)).to eq ["a"]
    end

    it "skips what is published and what is retired" do
      add("published", "retired", "free")
      store.mark_published("published")
      execute("UPDATE acemq_outbox SET attempts = 10 WHERE id = 'retired'")

      expect(claimed_ids).to eq ["free"]
    end

    it "gives the attempts so far" do
      add("a")
      execute("UPDATE acemq_outbox SET attempts = 3")

      expect(store.claim(1).records.first.attempts).to eq 3
    end

    it "sorts the records of several destinations by time, then by id" do
      now = Time.now
      add("d", routing_key: "x", created_at: now)
      add("c", routing_key: "y", created_at: now)
      add("b", routing_key: "z", created_at: now - 1)
      add("a", routing_key: "x", created_at: now + 1)

      expect(claimed_ids).to eq %w[b c d a]
    end

    it "keeps the rows behind a pausing head back, and other destinations flowing" do
      add("head", "follower", routing_key: "held")
      add("free", "too", routing_key: "open")
      back_off("head")

      expect(claimed_ids).to eq %w[free too]
      expire("head")
      expect(claimed_ids).to eq %w[head follower]
    end

    it "keeps the rows behind another relay's lease back" do
      add("head", "follower", routing_key: "held")
      lease_to("somebody", "head")

      expect(claimed_ids).to eq []
    end

    it "takes what lies in front of a held row" do
      add("first", "second", "third")
      back_off("second")

      expect(claimed_ids).to eq ["first"]
    end

    it "does not wait behind a retired row" do
      add("retired", "next")
      execute("UPDATE acemq_outbox SET attempts = 10, locked_until = #{sql_time(60)} WHERE id = 'retired'")

      expect(claimed_ids).to eq ["next"]
    end

    it "tells destinations by both names" do
      add("head", exchange: "a", routing_key: "b")
      add("same key", exchange: "c", routing_key: "b")
      add("same exchange", exchange: "a", routing_key: "c")
      back_off("head")

      expect(claimed_ids).to contain_exactly("same key", "same exchange")
    end

    it "ignores pauses when told to, but never leases" do
      add("pausing", routing_key: "one")
      add("leased", "behind", routing_key: "two")
      back_off("pausing")
      lease_to("somebody", "leased")

      expect(claimed_ids(ignore_backoff: true)).to eq ["pausing"]
    end

    it "works again and again inside one transaction, as in specs" do
      ActiveRecord::Base.transaction do
        add("a", "b")
        short = described_class.new(lease: 0.2)
        expect(claimed_ids(on: short)).to eq %w[a b]
        expect(claimed_ids(on: other)).to eq []
        eventually(3) { expect(claimed_ids(on: other)).to eq %w[a b] }
        raise ActiveRecord::Rollback
      end
    end
  end

  on_each_database do |name|
    describe "from our own table" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      include_examples "a claim"
    end

    describe "from a table that an application's own migration made" do
      before(:context) { make_outbox(:application) }
      before { empty("acemq_outbox") }

      # Without fractions of a second what an example writes in sequence has one and the same time.
      if name == :mariadb
        before(:context) do
          execute("ALTER TABLE acemq_outbox MODIFY created_at DATETIME(6) NOT NULL, MODIFY locked_until DATETIME(6)")
        end
      end

      include_examples "a claim"
    end

    describe "in the order of the whole table" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      it "stops at the first held row, whatever its destination" do
        add("a", routing_key: "one")
        add("b", routing_key: "two")
        add("c", routing_key: "three")
        back_off("b")

        expect(claimed_ids(ordering: :strict)).to eq ["a"]
        expect(claimed_ids(ordering: :strict)).to eq []
        expire("a", "b")
        expect(claimed_ids(2, ordering: :strict)).to eq %w[a b]
      end
    end

    describe "without order" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      it "takes the oldest free ones past held ones" do
        add("a", "b", "c", "d")
        back_off("a")
        lease_to("somebody", "c")

        expect(claimed_ids(ordering: :none)).to eq %w[b d]
      end

      it "gives two relays different rows" do
        ids = Array.new(200) { |i| format("%03d", i) }
        ActiveRecord::Base.transaction { add(*ids) }
        ActiveRecord::Base.connection_pool.release_connection

        found = Array.new(4) { Thread.new { claimed_ids(50, on: described_class.new, ordering: :none) } }.map(&:value)
        expect(found.flatten.sort).to eq ids
      end
    end

    describe "many destinations" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      it "gets round to the small ones in spite of a hot one" do
        add(*Array.new(30) { |i| "hot#{two(i)}" }, routing_key: "m")
        add("small a", routing_key: "a")
        add("small z", routing_key: "z")

        first_three = Array.new(3) do
          claim = store.claim(10)
          claim.settle(confirmed: claim.records.map(&:id))
          claim.records.map(&:id)
        end.flatten
        expect(first_three).to include("small a", "small z")
        expect(first_three.grep(/hot/)).to eq(first_three.grep(/hot/).sort)
      end

      it "jumps over long held ones" do
        ActiveRecord::Base.transaction do
          20.times { |d| add(*Array.new(15) { |i| "#{two(d)}-#{two(i)}" }, routing_key: "k#{two(d)}") }
        end
        heads = Array.new(20) { |d| "#{two(d)}-00" } - ["13-00"]
        heads.each { |id| back_off(id) }

        expect(claimed_ids(10)).to eq(Array.new(10) { |i| "13-#{two(i)}" })
        expect(claimed_ids(10)).to eq []
      end

      it "finds every one of more than a page holds" do
        add("x")
        template = "INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, " \
                   "created_at, attempts) VALUES "
        rows = Array.new(1_200) { |i| "('r#{i}', 'e', 'k#{i}', 'b', 'utf-8', 't', '{}', #{sql_time(0)}, 0)" }
        rows.each_slice(400) { |slice| execute(template + slice.join(", ")) }

        found = Array.new(7) { claimed_ids(200) }.flatten
        expect(found.uniq.size).to eq 1_201
        expect(found.size).to eq 1_201
      end
    end

    describe "rows that cannot be read" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      {
        "headers that are no JSON" => ["headers = '{broken'", /headers are not JSON/],
        "headers that are no object" => ["headers = '[1]'", /headers are not a JSON object/],
        "a body that is no base64" => ["body = '%%%', body_encoding = 'base64'", /not the base64/],
        "an encoding that nobody knows" => ["body_encoding = 'zip'", /body_encoding "zip" is neither/]
      }.each do |what, (damage, message)|
        it "come as a record that says so with #{what}, without harm to the others" do
          add("a", "broken", "b")
          execute("UPDATE acemq_outbox SET #{damage} WHERE id = 'broken'")

          records = store.claim(10).records
          expect(records.map(&:id)).to eq %w[a broken b]
          expect(records.map(&:error)).to match [nil, message, nil]
        end
      end
    end

    describe "large bodies" do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      it "come in claims that fit into memory, in order, and without keeping the rest leased" do
        stub_const("AceMQ::AMQP::Patterns::Leasing::MAX_BYTES", 1_000_000)
        bodies = Array.new(6) { |i| i.to_s * 400_000 }
        bodies.each_with_index { |body, i| store.add(outbox_record("r#{i}", body: body)) }

        seen = 3.times.flat_map do |i|
          claim = store.claim(10)
          expect([claim.records.size, claim.full?]).to eq [2, i < 2]
          expect(claimed_ids(on: other)).to eq [] # still in order: the rest waits behind these
          claim.settle(confirmed: claim.records.map(&:id))
          claim.records.map(&:body)
        end
        expect(seen == bodies).to be true
      end

      it "come alone when one is larger than that" do
        stub_const("AceMQ::AMQP::Patterns::Leasing::MAX_BYTES", 100_000)
        add("large", body: "x" * 200_000)
        add("small")

        expect(claimed_ids).to eq ["large"]
      end
    end

    it "has no connection checked out between its statements" do
      make_outbox
      add("a", "b")
      claim = store.claim(1)
      expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
      claim.settle(confirmed: ["a"])
      store.pending_count

      expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
    end

    it "is not answered from the query cache" do
      make_outbox
      add("a")
      ActiveRecord::Base.cache do
        expect(store.pending_count).to eq 1
        expect(claimed_ids(1)).to eq ["a"]
        add("b", routing_key: "other")
        expect(store.pending_count).to eq 2
        expect(claimed_ids(1)).to eq ["b"]
      end
      ActiveRecord::Base.connection_pool.release_connection
    end

    it "writes although the surrounding request may only read" do
      make_outbox
      add("a")
      ActiveRecord::Base.while_preventing_writes do
        expect { store.add(outbox_record("b")) }.to raise_error(ActiveRecord::ReadOnlyError)
        expect(store.claim(1).settle(confirmed: ["a"]).marked).to eq 1
      end
    end
  end

  it "names what is wrong with its arguments" do
    expect { store.claim(0) }.to raise_error(ArgumentError, /limit must be an Integer above 0, not 0/)
    expect { store.claim("5") }.to raise_error(ArgumentError, /limit/)
    expect { store.claim(5, ordering: :fifo) }.to raise_error(ArgumentError, /ordering: must be one of.*not :fifo/)
  end
end
