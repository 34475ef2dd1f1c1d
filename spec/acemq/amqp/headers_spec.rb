# frozen_string_literal: true

require "bigdecimal"

RSpec.describe AceMQ::AMQP::Headers do
  it "spells names and symbols as Strings, at every depth" do
    expect(described_class.render({ tenant: :acme, nested: { list: [:a, { b: 1 }] } }))
      .to eq("tenant" => "acme", "nested" => { "list" => ["a", { "b" => 1 }] })
  end

  it "keeps what AMQP has a type for" do
    values = { "s" => "é", "i" => -(2**63), "f" => 1.5, "t" => true, "n" => nil, "time" => Time.at(5).utc,
               "d" => BigDecimal("1.10"), "bytes" => "\xFF".b }

    expect(described_class.render(values)).to eq(values)
  end

  it "writes times in whole seconds, DateTime too" do
    rendered = described_class.render("a" => Time.at(5, 999, :millisecond), "b" => DateTime.new(1970, 1, 1, 1, 0, 9, "+01:00"))

    expect(rendered).to eq("a" => Time.at(5), "b" => Time.at(9))
  end

  it "writes text of another encoding in UTF-8" do
    rendered = described_class.render("k" => "caf\xE9".dup.force_encoding("ISO-8859-1"))

    expect(rendered["k"]).to eq("café").and have_attributes(encoding: Encoding::UTF_8)
  end

  {
    "a name of more than 255 bytes" => [{ "é" * 128 => 1 }, /256 bytes/],
    "NaN" => [{ "x" => Float::NAN }, /header x is NaN/],
    "an infinity, naming where" => [{ "x" => [{ y: Float::INFINITY }] }, /header x\[0\]\.y is Infinity/],
    "an integer beyond 64 bits" => [{ "x" => 2**63 }, /header x is 9223372036854775808/],
    "text that is not what it says" => [{ "x" => "\xFF" }, /header x is not valid UTF-8/],
    "an object" => [{ "x" => Object.new }, /header x is a Object/],
    "a time before 1970" => [{ "x" => Time.at(-1) }, /1970/],
    "a negative decimal" => [{ "x" => BigDecimal("-1.5") }, /BigDecimal/],
    "a decimal of too many digits" => [{ "x" => BigDecimal("12345678.12345") }, /BigDecimal/],
    "a name given twice" => [{ "x" => 1, x: 2 }, /header x is given twice/],
    "something that is no Hash" => [[1], /must be a Hash/]
  }.each do |what, (headers, message)|
    it "refuses #{what}" do
      expect { described_class.render(headers) }.to raise_error(ArgumentError, message)
    end
  end

  it "refuses a structure that contains itself" do
    loop_of_lists = []
    loop_of_lists << loop_of_lists

    expect { described_class.render("x" => loop_of_lists) }.to raise_error(ArgumentError, /nested deeper/)
  end

  it "refuses copies that are no list of routing keys" do
    expect { described_class.application("CC" => "audit") }.to raise_error(ArgumentError, /header CC/)
    expect(described_class.application("BCC" => ["audit"])).to eq("BCC" => ["audit"])
  end

  describe ".storable!" do
    it "accepts what JSON brings back as it was" do
      headers = { "s" => "é", "i" => 2**62, "f" => 0.1, "t" => true, "n" => nil, "l" => [1, { "a" => "b" }] }

      expect(JSON.parse(JSON.generate(described_class.storable!(headers)))).to eq(headers)
    end

    {
      "a time" => [{ "at" => Time.at(1) }, /header at is a Time/],
      "a time inside" => [{ "a" => { "b" => [DateTime.now] } }, /header a\.b\[0\] is a Time/],
      "a decimal" => [{ "d" => BigDecimal("1.5") }, /header d is a BigDecimal/],
      "bytes" => [{ "b" => "\xFF".b }, /header b is binary/]
    }.each do |what, (headers, message)|
      it "refuses #{what}, which the JSON column cannot keep" do
        expect { described_class.storable!(headers) }.to raise_error(ArgumentError, message)
      end
    end

    it "refuses more than one frame can carry, naming the largest header" do
      expect { described_class.storable!("small" => "x", "huge" => "x" * 131_500) }
        .to raise_error(ArgumentError, /huge/)
      expect(described_class.storable!("large" => "x" * 129_900)).to have_key("large")
    end
  end

  it "knows how many bytes a table takes" do
    headers = { "ab" => "xyz", "n" => 1, "t" => true, "v" => nil, "l" => ["q"], "h" => { "z" => 1.5 } }
    names = 6 + headers.keys.sum(&:bytesize)
    values = (1 + 4 + 3) + 9 + 2 + 1 + (1 + 4 + 6) + (1 + 4 + (1 + 1 + 9))

    expect(described_class.wire_size(headers)).to eq(4 + names + values)
  end
end
