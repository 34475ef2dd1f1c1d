# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns::SQL do
  subject(:seam) { described_class.connect(source) }

  def violation(sql)
    seam.run(sql, [])
    raise "nothing was violated"
  rescue PG::Error, SQLite3::Exception => e
    e
  end

  on_each_database(:sqlite, :postgres) do
    before do
      raw
      connection { |db| db.create_table(:things, id: false, force: true) { |t| t.string(:id, null: false, primary_key: true) } }
    end

    let(:source) { raw }

    it "runs statements with parameters, and answers with rows by position and how many changed" do
      inserted = seam.run("INSERT INTO things (id) VALUES (#{seam.placeholder(1)}), (#{seam.placeholder(2)})", %w[a b])
      raw.results_as_hash = true if database == :sqlite
      raw.type_map_for_results = PG::BasicTypeMapForResults.new(raw) if database == :postgres

      expect(inserted.affected).to eq 2
      expect(seam.run("SELECT id, id FROM things ORDER BY id").rows).to eq [%w[a a], %w[b b]]
      expect(seam.run("DELETE FROM things WHERE id = #{seam.placeholder(1)}", ["nothing"]).affected).to eq 0
    end

    it "takes text that is tagged as binary for text" do
      seam.run("INSERT INTO things (id) VALUES (#{seam.placeholder(1)})", ["\u00e9".b])

      expect(seam.run("SELECT id FROM things WHERE id = #{seam.placeholder(1)}", ["\u00e9"]).rows).to eq [["\u00e9"]]
      expect(described_class.key("\u00e9".b)).to eq "\u00e9"
    end

    it "tells a duplicate key from every other violation" do
      seam.run("INSERT INTO things (id) VALUES ('a')", [])

      expect(seam.constraint_violation?(violation("INSERT INTO things (id) VALUES ('a')"))).to be true
      expect(seam.constraint_violation?(violation("INSERT INTO things (id) VALUES (NULL)"))).to be false
      expect(seam.constraint_violation?(IOError.new)).to be false
    end
  end

  it "takes what answers for itself as it is, and refuses what is no driver's connection" do
    own = Struct.new(:run, :placeholder).new
    expect(described_class.connect(own)).to be own

    expect { described_class.connect(nil) }.to raise_error(ArgumentError, "NilClass is no connection of the pg or sqlite3 driver")
  end

  on_each_database(:sqlite) do
    it "says what to give instead of an ActiveRecord connection" do
      connection do |db|
        expect { described_class.connect(db) }.to raise_error(ArgumentError, /SQLite3Adapter.*: give its raw_connection/)
      end
    end
  end
end
