# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "adding" do
  subject(:store) { described_class.new(max_payload: nil) }

  def transaction(**options, &block)
    ActiveRecord::Base.transaction(**options, &block)
  end

  def place_order(name)
    ActiveRecord::Base.connection.execute("INSERT INTO orders (name) VALUES ('#{name}')")
  end

  # Another connection sees only what is committed.
  def committed_orders
    Thread.new { rows("orders", order: "id").map { |row| row["name"] } }.value
  end

  def committed_ids
    Thread.new { rows.map { |row| row["id"] } }.value
  end

  after { ActiveRecord::Base.connection_pool.release_connection }

  on_each_database do |name|
    before(:context) do
      make_outbox
      make_orders
    end
    before { empty("acemq_outbox", "orders") }

    describe "in the caller's transaction" do
      it "is committed with it" do
        transaction do
          place_order("first")
          store.add(outbox_record("a"))
        end

        expect(committed_ids).to eq ["a"]
      end

      it "is rolled back with it" do
        transaction do
          store.add(outbox_record("a"))
          raise ActiveRecord::Rollback
        end

        expect(committed_ids).to be_empty
      end

      it "is rolled back with a savepoint, without harm to the rest" do
        transaction do
          place_order("first")
          store.add(outbox_record("kept"))
          transaction(requires_new: true) do
            store.add(outbox_record("dropped"))
            raise ActiveRecord::Rollback
          end
        end

        expect(committed_ids).to eq ["kept"]
        expect(committed_orders).to eq ["first"]
      end

      it "returns nil, and leaves no connection checked out when there was none" do
        expect(store.add(outbox_record)).to be_nil
        expect(ActiveRecord::Base.connection_pool.stat[:busy]).to eq 0
      end
    end

    # Case 2.
    describe "an id that is there already" do
      before { store.add(outbox_record("dup", body: "first")) }

      it "changes nothing and lets the transaction commit" do
        transaction do
          place_order("as the last statement")
          store.add(outbox_record("dup", body: "second"))
        end

        expect(committed_orders).to eq ["as the last statement"]
        expect(rows.map { |row| row["body"] }).to eq ["first"]
      end

      it "lets the transaction go on writing" do
        transaction do
          store.add(outbox_record("dup"))
          place_order("afterwards")
          store.add(outbox_record("dup"))
          store.add(outbox_record("new"))
        end

        expect(committed_orders).to eq ["afterwards"]
        expect(committed_ids).to eq %w[dup new]
      end

      it "is none of a nested transaction's business" do
        transaction do
          place_order("outer")
          transaction(requires_new: true) do
            place_order("inner")
            store.add(outbox_record("dup"))
          end
        end

        expect(committed_orders).to eq %w[outer inner]
        expect(committed_ids).to eq ["dup"]
      end

      it "may come twice in one transaction" do
        transaction do
          store.add(outbox_record("twice"))
          store.add(outbox_record("twice"))
          place_order("with both")
        end

        expect(committed_orders).to eq ["with both"]
        expect(committed_ids).to eq %w[dup twice]
      end
    end

    # Case 11.
    describe "bodies" do
      {
        "a NUL in clean text" => "a\u0000b",
        "every byte" => (0..255).to_a.pack("C*"),
        "an emoji" => JSON.generate("mood" => "😀"),
        "70,000 characters" => "x" * 70_000,
        "50,000 random bytes" => Random.new(7).bytes(50_000),
        "nothing" => "",
        "quotes and backslashes" => %q(' " \\ \n \0 ; -- %s ? $1 :a),
        "a byte order mark and line ends" => "\uFEFFa\r\nb\rc\n",
        "text that says it is binary" => "déjà vu".b,
        "bytes that say they are UTF-16" => "text".encode("UTF-16LE"),
        "what looks like base64" => ["hello"].pack("m0"),
        "a megabyte" => ("0123456789abcdef" * 65_536)
      }.each do |what, body|
        it "come back byte for byte with #{what}" do
          store.add(outbox_record("a", body: body))

          expect(store.claim(1).records.first.body.b == body.b).to be true
        end
      end

      it "stay readable in the table when they are text" do
        store.add(outbox_record("a", body: "Grüße".b))
        store.add(outbox_record("b", body: "\xFF"))

        expect(row("a").values_at("body", "body_encoding")).to eq %w[Grüße utf-8]
        expect(row("b").values_at("body", "body_encoding")).to eq ["/w==", "base64"]
      end
    end

    it "gives back every member as it was" do
      headers = { "x-acemq-id" => "a", "number" => 7, "float" => 1.5, "none" => nil, "list" => [1, "ü", { "deep" => true }] }
      store.add(outbox_record("a", exchange: "läden", routing_key: "order.größe", content_type: "text/plain; charset=utf-8",
                                   headers: headers, created_at: Time.utc(2026, 1, 2, 3, 4, 5.678901r)))

      record = store.claim(1).records.first
      expect(record.to_h).to include(id: "a", exchange: "läden", routing_key: "order.größe", headers: headers,
                                     content_type: "text/plain; charset=utf-8", attempts: 0, error: nil,
                                     created_at: Time.utc(2026, 1, 2, 3, 4, 5.678901r))
    end

    it "takes the default exchange, symbols for names, and an unset time" do
      before = Time.now.floor(6)
      store.add(outbox_record("a", exchange: nil, routing_key: :queue))

      record = store.claim(1).records.first
      expect([record.exchange, record.routing_key]).to eq ["", "queue"]
      expect(record.created_at).to be_between(before, Time.now)
    end

    # Cases 5 and 11.
    describe "refusals" do
      def refused(message, **members)
        expect { transaction { store.add(outbox_record("a", **members)) } }.to raise_error(ArgumentError, message)
        expect(committed_ids).to be_empty
      end

      it "names a routing key, exchange, or content type beyond 255 bytes" do
        refused(/routing key is 256 bytes/, routing_key: "k" * 256)
        refused(/exchange is 256 bytes/, exchange: "é" * 128)
        refused(/content type is 300 bytes/, content_type: "t" * 300)
      end

      it "takes 255 bytes of each" do
        store.add(outbox_record("i" * 64, routing_key: "é" * 127, exchange: "e" * 255, content_type: "t" * 255))

        expect(claimed_ids).to eq ["i" * 64]
      end

      it "names an id that is too long or missing" do
        refused(/id is 65 characters long and acemq_outbox.id holds 64/, id: "i" * 65)
        refused(/id is 256 bytes/, id: "i" * 256)
        refused(/needs an id/, id: "")
        refused(/needs an id/, id: nil)
      end

      it "names what is no text" do
        refused(/routing key is not valid UTF-8/, routing_key: "\xFF")
        refused(/routing key must be a String, not Hash/, routing_key: {})
        refused(/exchange "a\\u0000b" contains a NUL/, exchange: "a\0b")
      end

      it "names headers that a row or the wire cannot carry" do
        refused(/header name/, headers: { "n" * 256 => 1 })
        refused(/header at is a Time/, headers: { "at" => Time.now })
        refused(/header raw is binary/, headers: { "raw" => "\xFF".b })
        refused(/headers are \d+ bytes long.*"big"/, headers: { "big" => "x" * 131_500 })
        refused(/headers must be a Hash/, headers: "x=1")
      end

      it "names further destinations of a shape that the broker closes the channel for" do
        refused(/header CC must be/, headers: { "CC" => "audit" })
        refused(/header BCC/, headers: { "BCC" => [1] })

        store.add(outbox_record("a", headers: { "CC" => ["audit"], "BCC" => [] }))
        expect(claimed_ids).to eq ["a"]
      end

      it "names a body or a time of the wrong kind" do
        refused(/body must be the encoded bytes in a String, not Hash/, body: {})
        refused(/created_at must be a Time, not "yesterday"/, created_at: "yesterday")
      end

      it "leaves the transaction usable" do
        transaction do
          place_order("stays")
          expect { store.add(outbox_record("a", routing_key: "k" * 256)) }.to raise_error(ArgumentError)
          store.add(outbox_record("b"))
        end

        expect([committed_orders, committed_ids]).to eq [["stays"], ["b"]]
      end
    end

    it "keeps the insertion order of one writer, also while the system's clock stands" do
      allow(Time).to receive(:now).and_return(Time.now)
      ids = Array.new(50) { SecureRandom.uuid }
      ids.each { |id| transaction { store.add(outbox_record(id)) } }

      expect(claimed_ids).to eq ids
    end

    if name == :mariadb
      it "refuses what would make a statement longer than the server takes" do
        expect { store.add(outbox_record("a", body: "x" * (value("SELECT @@max_allowed_packet").to_i + 1))) }
          .to raise_error(ArgumentError, /body is \d+ bytes long/)
      end
    end
  end

  describe "into a table that an application's own migration made" do
    on_each_database(:mariadb) do
      before(:context) { make_outbox(:application) }
      before { empty("acemq_outbox") }

      it "refuses a body beyond the column, with what base64 makes of it, and says how to widen it" do
        expect { store.add(outbox_record("a", body: "x" * 70_000)) }
          .to raise_error(ArgumentError,
                          /body is 70000 bytes long and acemq_outbox.body holds 65535; .*change_column :acemq_outbox/)
        expect { store.add(outbox_record("a", body: Random.bytes(50_000))) }
          .to raise_error(ArgumentError, /body is 50000 bytes long \(66668 in base64.*holds 65535/)
        expect(rows).to be_empty
      end

      it "takes a body of exactly the column's size" do
        store.add(outbox_record("a", body: "x" * 65_535))

        expect(store.claim(1).records.first.body.bytesize).to eq 65_535
      end

      it "tells an id that the collation takes for another one from a repetition" do
        store.add(outbox_record("abc"))
        store.add(outbox_record("abc"))

        expect { store.add(outbox_record("ABC")) }.to raise_error(ArgumentError, /'ABC' cannot be told from 'abc'.*utf8mb4_bin/)
        expect { store.add(outbox_record("abc ")) }.to raise_error(ArgumentError, /cannot be told from/)
      end
    end

    on_each_database(:mariadb, strict: false) do
      before(:context) { make_outbox(:application) }
      before { empty("acemq_outbox") }

      it "cuts nothing silently on a server that is not strict" do
        expect { store.add(outbox_record("a", body: "x" * 70_000)) }.to raise_error(ArgumentError, /holds 65535/)
        expect { store.add(outbox_record("a", id: "i" * 65)) }.to raise_error(ArgumentError, /holds 64/)
        expect(rows).to be_empty
      end
    end
  end

  describe "into a table of a narrower character set" do
    on_each_database(:mariadb) do
      before(:context) do
        make_outbox(:application)
        execute("ALTER TABLE acemq_outbox CONVERT TO CHARACTER SET utf8mb3")
      end
      before { empty("acemq_outbox") }

      it "keeps emoji in bodies and headers all the same" do
        store.add(outbox_record("a", body: "mood 😀", headers: { "mood" => "😀" }))

        record = store.claim(1).records.first
        expect([record.body.b, record.headers]).to eq ["mood 😀".b, { "mood" => "😀" }]
      end

      it "refuses them in names" do
        expect { store.add(outbox_record("a", routing_key: "😀")) }.to raise_error(ArgumentError, /routing key "😀".*use utf8mb4/)
      end
    end

    on_each_database(:mariadb, encoding: "latin1") do
      before(:context) { make_outbox }
      before { empty("acemq_outbox") }

      it "sees the same in the connection" do
        store.add(outbox_record("a", body: "mood 😀 ü", headers: { "mood" => "😀" }))

        record = store.claim(1).records.first
        expect([record.body.b, record.headers]).to eq ["mood 😀 ü".b, { "mood" => "😀" }]
      end
    end
  end

  # Case 12.
  describe "insertion order in a table without fractions of a second" do
    on_each_database do
      before(:context) { make_outbox(:application) }
      before { empty("acemq_outbox") }

      it "is kept by the library's own ids" do
        ids = Array.new(20) { AceMQ::AMQP::Envelope.new.id }
        ids.each { |id| transaction { store.add(outbox_record(id)) } }

        expect(claimed_ids).to eq ids
      end
    end
  end
end
