# frozen_string_literal: true

require "acemq/amqp/patterns/sql/destination_walk"

RSpec.describe AceMQ::AMQP::Patterns::DestinationWalk do
  let(:page_class) { AceMQ::AMQP::Patterns::DestinationPage }

  # A table in memory: destination => [[id, held]], in the order of a database.
  def page_of(table, asked)
    lambda do |after, size|
      asked << size
      rows = table.sort.flat_map { |name, found| found.map { |id, held| [id, *name, held ? 1 : 0] } }
      rows = rows.select { |row| (row[1, 2] <=> after) == 1 } if after
      page_class.of(rows.first(size), size)
    end
  end

  def table(random)
    Array.new(random.rand(1..12)) do |d|
      rows = Array.new([1, 3, 20].sample(random: random)) { |i| ["#{d}-#{i}", random.rand < 0.15] }
      rows.each { |row| row[1] = true } if random.rand < 0.3
      [["e#{random.rand(2)}", "k#{d}"], rows]
    end.to_h
  end

  def free_beginning(rows)
    rows.take_while { |_, held| !held }.map(&:first)
  end

  it "finds the free beginning of every destination, in any table, and never more than asked for" do
    200.times do |seed|
      random = Random.new(seed)
      rows = table(random)
      limit = random.rand(1..40)
      walk = described_class.new
      expected = rows.values.map { |found| free_beginning(found) }

      5.times do
        lists = walk.candidates(limit, &page_of(rows, []))
        expect(lists.flatten.size).to eq [expected.sum { |ids| [ids.size, limit].min }, limit].min
        lists.each { |list| expect(expected.find { |ids| ids.first == list.first }.first(list.size)).to eq list }
      end
    end
  end

  it "comes to every destination in turn" do
    rows = Array.new(10) { |d| [["e", "k#{d}"], Array.new(20) { |i| ["#{d}-#{i}", false] }] }.to_h
    walk = described_class.new

    seen = Array.new(10) { walk.candidates(15, &page_of(rows, [])).flatten.map { |id| id[0] } }.flatten
    expect(seen.tally).to eq(("0".."9").to_h { |d| [d, 15] })
  end

  it "asks for a few rows only behind a held destination" do
    rows = Array.new(30) { |d| [["e", "k#{d.to_s.rjust(2, "0")}"], Array.new(20) { |i| ["#{d}-#{i}", true] }] }.to_h
    asked = []

    expect(described_class.new.candidates(100, &page_of(rows, asked))).to eq []
    expect(asked.first).to eq 100
    expect(asked.drop(1)).to all(eq 8)
  end

  it "fills its batch from a long destination behind a short held one" do
    rows = { %w[e a] => Array.new(6) { |i| ["a-#{i}", true] }, %w[e b] => Array.new(50) { |i| ["b-#{i}", false] } }

    expect(described_class.new.candidates(10, &page_of(rows, []))).to eq [Array.new(10) { |i| "b-#{i}" }]
  end

  # As with "Foo" and "foo" under a collation that ignores case: the rows of both come interleaved, and what lies behind
  # the one lies behind the other too.
  it "takes what it can see of a destination that the database cannot tell from a held one" do
    rows = Array.new(50) { |i| i.even? ? ["held-#{i}", "e", "foo", 1] : ["free-#{i}", "e", "Foo", 0] }
    page = ->(after, size) { page_class.of(after ? [] : rows.first(size), size) }

    expect(described_class.new.candidates(10, &page)).to eq [%w[free-1 free-3 free-5 free-7 free-9]]
  end

  it "ends although a page does not move on" do
    page = page_class.new([["a", "e", "k", 1]], %w[e k])

    expect(described_class.new.candidates(10) { page }).to eq []
  end
end
