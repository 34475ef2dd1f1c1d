# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::ActiveRecordOutboxStore, "use of indexes" do
  subject(:store) { described_class.new }

  # What a statement of that name looks like.
  #
  # @return [Array<String>]
  def statements(name)
    seen = []
    listener = ActiveSupport::Notifications.subscribe("sql.active_record") do |*, event|
      seen << event[:sql] if event[:name] == name
    end
    yield
    seen
  ensure
    ActiveSupport::Notifications.unsubscribe(listener)
  end

  def plan(sql)
    explain = database == :sqlite ? "EXPLAIN QUERY PLAN" : "EXPLAIN"
    explained = sql.sub(/\A(SET [^;]+; )*/) { |settings| "#{settings}#{explain} " }
    connection { |db| db.execute(explained).map { |row| (row.respond_to?(:values) ? row.values : row).join(" ") }.join("\n") }
  end

  # Much that is published, and a backlog of which most is held: what makes a wrong plan expensive. The statistics
  # are from a quiet moment, as they mostly are.
  def fill
    columns = "id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at, attempts"
    values = ->(key) { "'shop', #{key}, '{}', 'utf-8', 'application/json', '{}', #{sql_time(-60)}, 0" }
    source = series(4_000)
    execute("INSERT INTO acemq_outbox (#{columns}, published_at) " \
            "SELECT #{text("'p'", "n")}, #{values.call(text("'k'", "(n % 20)"))}, #{sql_time(-30)} FROM #{source}")
    connection { |db| db.execute(database == :mariadb ? "ANALYZE TABLE acemq_outbox" : "ANALYZE") }
    execute("INSERT INTO acemq_outbox (#{columns}, locked_until) " \
            "SELECT #{text("'h'", "n")}, #{values.call(text("'held'", "(n % 3)"))}, #{sql_time(600)} FROM #{source}")
    execute("INSERT INTO acemq_outbox (#{columns}) " \
            "SELECT #{text("'f'", "n")}, #{values.call(text("'k'", "(n % 20)"))} FROM #{series(200)}")
  end

  def text(*parts)
    database == :mariadb ? "CONCAT(#{parts.join(", ")})" : parts.join(" || ")
  end

  def series(count)
    case database
    when :postgres then "generate_series(1, #{count}) AS s(n)"
    when :mariadb then "(SELECT seq AS n FROM seq_1_to_#{count}) AS s"
    else "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < #{count}) SELECT n FROM c) AS s"
    end
  end

  on_each_database do |name|
    before(:context) { make_outbox }

    before do
      empty("acemq_outbox")
      fill
    end

    it "finds candidates along the destinations" do
      claims = statements("AceMQ claim") { expect(store.claim(50).records.size).to eq 50 }

      expect(claims).not_to be_empty
      claims.each do |sql|
        expect(plan(sql)).to include("acemq_outbox_destination")
        expect(plan(sql)).not_to match(/seq scan|filesort|temp b-tree|scan acemq_outbox(?! using)/i)
      end
    end

    it "leases, settles and reads by the ids alone" do
      by_id = statements("AceMQ lease") { @claim = store.claim(50) }
      ids = @claim.records.map(&:id)
      by_id += statements("AceMQ settle") { @claim.settle(confirmed: ids.first(20), unsent: ids.last(20)) }
      by_id += statements("AceMQ mark") { store.mark_published(ids) }

      expect(by_id.size).to eq 4
      by_id.each do |sql|
        expected = { sqlite: /SEARCH acemq_outbox USING INDEX sqlite_autoindex_acemq_outbox_1/,
                     postgres: /acemq_outbox_pkey/, mariadb: /range PRIMARY PRIMARY/ }.fetch(name)
        expect(plan(sql)).to match(expected)
        expect(plan(sql)).not_to match(/acemq_outbox_(destination|pending|published)|seq scan/i)
      end
    end

    it "purges along the time of publishing" do
      purges = statements("AceMQ purge") { expect(store.purge_published(10, batch: 500)).to eq 4_000 }
      index = name == :postgres ? "acemq_outbox_published" : "acemq_outbox_pending"

      expect(plan(purges.first)).to include(index)
      expect(plan(purges[1])).to match(/range PRIMARY PRIMARY/) if name == :mariadb
    end
  end

  on_each_database(:sqlite) do
    # As most files of SQLite are. The planner takes any condition of equality for better than an order, or a list of ids.
    it "finds candidates along the destinations in a table that has never been analyzed" do
      make_outbox
      add("u-1", "u-2")
      claims = statements("AceMQ claim") { expect(store.claim(50).records.size).to eq 2 }

      expect(claims).not_to be_empty
      claims.each { |sql| expect(plan(sql)).to match(/acemq_outbox_destination/).and(satisfy { |plan| !plan.match?(/temp b-tree/i) }) }
    end

    it "leases, settles and reads by the ids alone in a table that has never been analyzed" do
      make_outbox
      add(*Array.new(50) { |n| "u-#{n}" })
      by_id = statements("AceMQ lease") { @claim = store.claim(50) }
      by_id += statements("AceMQ settle") { @claim.settle(confirmed: @claim.records.map(&:id)) }
      by_id += statements("AceMQ mark") { store.mark_published(@claim.records.map(&:id)) }

      expect(by_id.size).to eq 3
      expect(by_id.map { |sql| plan(sql) }).to all(match(/SEARCH acemq_outbox USING INDEX sqlite_autoindex_acemq_outbox_1/))
    end
  end

  on_each_database(:postgres) do
    # Enough rows for the planner to see three of them where it knows nothing of a table.
    it "is not given up for a table that has never been looked at by anybody" do
      make_outbox
      execute("INSERT INTO acemq_outbox (id, exchange_name, routing_key, body, body_encoding, content_type, headers, created_at) " \
              "SELECT 'n' || n, 'shop', 'k' || n % 99, repeat('x', 200), 'utf-8', 'text/plain', '{}', #{sql_time(-60)} " \
              "FROM #{series(10_000)}")
      claims = statements("AceMQ claim") { expect(store.claim(100).records.size).to eq 100 }

      expect(plan(claims.first)).not_to match(/bitmap/i)
    end

    it "changes no setting that outlives a claim" do
      make_outbox
      add("a")
      ActiveRecord::Base.transaction { store.claim(1) }
      store.claim(1)

      expect(%w[enable_bitmapscan jit].map { |setting| value("SHOW #{setting}") }).to eq %w[on on]
    end
  end

  on_each_database do
    it "are added to a table that came without them, once" do
      make_outbox(:application)
      expect(store.indexed?).to be false
      2.times { connection { |db| described_class.add_indexes(db) } }

      expect(store.indexed?).to be true
      fill
      claims = statements("AceMQ claim") { store.claim(50) }
      expect(plan(claims.first)).to include("acemq_outbox_destination")
    end
  end

  on_each_database do
    it "find the oldest rows of the whole table, where it was made for that" do
      connection do |db|
        db.drop_table(:acemq_outbox, if_exists: true)
        described_class.create_table(db, by_time: true)
      end
      fill

      %i[strict none].each do |ordering|
        claims = statements(database == :postgres && ordering == :none ? "AceMQ lease" : "AceMQ claim") do
          store.claim(50, ordering: ordering)
        end
        expect(plan(claims.first)).to match(/acemq_outbox_(oldest|pending)/)
        expect(plan(claims.first)).not_to match(/seq scan|filesort|temp b-tree for order/i)
      end
    end
  end

  on_each_database(:postgres) do
    it "are added while writers go on" do
      make_outbox(:application)
      Thread.new do
        connection { |db| described_class.add_indexes(db, concurrently: true) }
      end.join

      expect(connection { |db| db.index_name_exists?("acemq_outbox", "acemq_outbox_destination") }).to be true
    end
  end
end
