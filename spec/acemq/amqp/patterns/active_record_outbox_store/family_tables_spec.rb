# frozen_string_literal: true

# Rows and tables of the family's other libraries, of an application's own store, and of ours, in each other's hands.
RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "tables of others" do
  subject(:store) { described_class.new(lease: 30) }

  # As the family's libraries write a time: UTC, with a zone, as text.
  def family_time(time)
    "'#{time.getutc.strftime("%Y-%m-%dT%H:%M:%S.%6NZ")}'"
  end

  # As ActiveRecord writes one.
  def record_time(time)
    "'#{(local? ? time.getlocal : time.getutc).strftime("%Y-%m-%d %H:%M:%S.%6N")}'"
  end

  def local?
    time_zones.default_timezone == :local
  end

  # Where the setting lives: it moved with Rails 7.
  def time_zones
    ActiveRecord.respond_to?(:default_timezone) ? ActiveRecord : ActiveRecord::Base
  end

  def write(id, created_at, locked_by: nil, locked_until: "NULL", routing_key: id)
    execute("INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, " \
            "created_at, attempts, locked_by, locked_until) VALUES ('#{id}', 'shop', '#{routing_key}', '{}', 'utf-8', " \
            "'application/json', '{}', #{created_at}, 0, #{locked_by ? "'#{locked_by}'" : "NULL"}, #{locked_until})")
  end

  def in_zone(zone)
    before = ENV.fetch("TZ", nil)
    ENV["TZ"] = zone
    yield
  ensure
    ENV["TZ"] = before
  end

  shared_examples "a fair judge of times" do |writes|
    let(:now) { Time.now }

    define_method(:text) { |time| send(writes, time) }

    it "honours a lease of another writer while it lasts, and no longer" do
      write("leased", text(now), locked_by: "java", locked_until: text(now + 30))
      write("expired", text(now), locked_by: "java", locked_until: text(now - 2))
      write("pausing", text(now), locked_until: text(now + 30))
      write("free", text(now))

      expect(claimed_ids).to contain_exactly("expired", "free")
    end

    it "reads when a record was written" do
      write("a", text(now))
      store.add(outbox_record("b", created_at: now))

      expect(store.claim(2).records.map(&:created_at)).to eq [now.floor(6)] * 2
    end

    it "leases for the time it says, and marks with the present" do
      write("a", text(now))
      claim = store.claim(1)
      expect(described_class.new.claim(1)).to be_empty
      claim.settle(confirmed: ["a"])

      expect(store.purge_published(20)).to eq 0
      expect(store.purge_published(-20)).to eq 1
    end

    it "knows ages" do
      write("a", text(now - 90))

      expect(store.oldest_pending_age).to be_between(89, 100)
    end

    it "keeps its own records in order with those of others" do
      write("1", text(now - 3), routing_key: "k")
      store.add(outbox_record("2", created_at: now - 2, routing_key: "k"))
      write("3", text(now - 1), routing_key: "k")
      store.add(outbox_record("4", created_at: now, routing_key: "k"))

      expect(claimed_ids).to eq %w[1 2 3 4]
    end
  end

  { "America/New_York" => :utc, "Asia/Tokyo" => :local, "America/Caracas" => :local }.each do |zone, setting|
    describe "in #{zone} with default_timezone #{setting}" do
      around do |example|
        default = time_zones.default_timezone
        time_zones.default_timezone = setting
        in_zone(zone) { example.run }
        time_zones.default_timezone = default
      end

      on_each_database do |name|
        before do
          make_outbox(:application)
          if name == :mariadb # whose datetime without a precision keeps whole seconds
            execute("ALTER TABLE acemq_outbox MODIFY created_at DATETIME(6) NOT NULL, MODIFY locked_until DATETIME(6), " \
                    "MODIFY published_at DATETIME(6)")
          end
        end

        include_examples "a fair judge of times", :record_time
      end

      on_each_database(:sqlite, :postgres) do
        before { make_outbox(:family) }

        include_examples "a fair judge of times", :family_time
      end
    end
  end

  on_each_database(:sqlite) do
    before { make_outbox(:application) }

    it "reads both ways of writing a time in one SQLite table" do
      now = Time.now
      write("leased", family_time(now), locked_by: "java", locked_until: family_time(now + 2))
      write("expired", family_time(now), locked_by: "java", locked_until: family_time(now - 2))
      write("ours", record_time(now), locked_by: "ruby", locked_until: record_time(now - 2))

      expect(claimed_ids).to contain_exactly("expired", "ours")
    end

    it "says of an unreadable time that it is one" do
      write("a", "'last week'")

      expect(store.claim(1).records.first.error).to match(/created_at "last week" is not a time/)
    end
  end

  on_each_database(:mariadb) do
    it "ends no lease early in a column without fractions of a second" do
      make_outbox(:application)
      20.times do |i|
        store.add(outbox_record(i.to_s))
        described_class.new(lease: 1).claim(1)
        expect(value("SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), locked_until) FROM acemq_outbox " \
                     "WHERE id = '#{i}'")).to be > 900_000
        store.mark_published(i.to_s)
      end
    end
  end

  on_each_database(:postgres, variables: { timezone: "Asia/Kolkata" }) do
    %i[application family].each do |origin|
      it "does not mind the session's own time zone on a table of the #{origin}" do
        make_outbox(origin)
        now = Time.now
        store.add(outbox_record("a", created_at: now))
        execute("UPDATE acemq_outbox SET attempts = 0")
        claim = described_class.new(lease: 2).claim(1)

        expect(claim.records.first.created_at).to eq now.floor(6)
        expect(store.claim(1)).to be_empty
        eventually(5) { expect(claimed_ids).to eq ["a"] }
        expect(store.oldest_pending_age).to be_between(0, 60)
      end
    end
  end
end
