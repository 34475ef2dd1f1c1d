# frozen_string_literal: true

require "bigdecimal"
require "open3"
require "rbconfig"

RSpec.describe AceMQ::AMQP::JSONCodec do
  subject(:codec) { described_class.new }

  describe "#encode" do
    {
      "a time with milliseconds, in UTC" => [Time.utc(2026, 1, 2, 3, 4, 5, 678_900), '"2026-01-02T03:04:05.678Z"'],
      "a time with its offset" => [Time.new(2026, 1, 2, 3, 4, 5, "+02:00"), '"2026-01-02T03:04:05.000+02:00"'],
      "a DateTime" => [DateTime.new(2026, 1, 2, 3, 4, 5.5), '"2026-01-02T03:04:05.500Z"'],
      "a date" => [Date.new(2026, 1, 2), '"2026-01-02"'],
      "a decimal, plain" => [BigDecimal("1.10"), '"1.1"'],
      "a large decimal, plain" => [BigDecimal("1e20"), '"100000000000000000000.0"'],
      "an integer of any size, exactly" => [2**70, "1180591620717411303424"],
      "a symbol" => [:placed, '"placed"'],
      "markup, unescaped" => ["<b>&", '"<b>&"'],
      "NUL" => ["a\0b", '"a\u0000b"'],
      "a set" => [Set[1, 2], "[1,2]"],
      "a struct" => [Struct.new(:a, :b).new(1, :x), '{"a":1,"b":"x"}'],
      "keys as they are spelled" => [{ "snake_case" => 1, camelCase: 2, 3 => 4 }, '{"snake_case":1,"camelCase":2,"3":4}'],
      "text tagged as bytes" => ["é".b, '"é"']
    }.each do |what, (payload, json)|
      it "writes #{what}" do
        expect(codec.encode(payload)).to eq(json)
      end
    end

    it "asks an object for its as_json, and encodes the answer by the same rules" do
      order = Class.new { def as_json(*) = { at: Time.at(0).utc } }.new

      expect(codec.encode([order])).to eq('[{"at":"1970-01-01T00:00:00.000Z"}]')
    end

    {
      "NaN" => [{ n: Float::NAN }, /\$\.n is NaN/],
      "a decimal that is none" => [[BigDecimal("NaN")], /\$\[0\] is NaN/],
      "text that is not UTF-8" => [{ items: [{ name: "\xFF" }] }, /\$\.items\[0\]\.name is not valid UTF-8/],
      "a key that is not UTF-8" => [{ a: { "\xFF" => 1 } }, /\$\.a has a key that is not valid/],
      "a key given as String and as Symbol" => [{ o: { "x" => 1, x: 2 } }, /\$\.o has "x" twice/],
      "an object without a meaning" => [{ o: Object.new }, /\$\.o is a Object/],
      "a range" => [{ r: 1..2 }, /\$\.r is a Range/],
      "a key that is an object" => [{ nil => 1 }, /\$ has a key that is a NilClass/]
    }.each do |what, (payload, message)|
      it "refuses #{what}, naming the place" do
        expect { codec.encode(payload) }.to raise_error(AceMQ::AMQP::EncodeError, message)
      end
    end

    it "refuses a payload that contains itself" do
      payload = {}
      payload[:self] = payload

      expect { codec.encode(payload) }.to raise_error(AceMQ::AMQP::EncodeError, /nested deeper/)
    end

    it "refuses an object that converts into another like it" do
      endless = Class.new { def as_json(*) = self.class.new }.new

      expect { codec.encode(endless) }.to raise_error(AceMQ::AMQP::EncodeError, /nested deeper/)
    end

    it "reads as deep as it writes" do
      deep = (1...100).reduce([]) { |inner, _| [inner] }

      expect(codec.decode(codec.encode(deep))).to eq(deep)
      expect { codec.encode([deep]) }.to raise_error(AceMQ::AMQP::EncodeError, /nested deeper than 100 levels/)
    end

    it "names the place of an object whose conversion fails" do
      broken = Class.new { def as_json(*) = raise("no such column") }.new

      expect { codec.encode({ order: broken }) }.to raise_error(AceMQ::AMQP::EncodeError, /\$\.order .*no such column/)
    end
  end

  # Each library that is loaded changes what its classes answer; the bytes must not change.
  describe "with and without ActiveSupport" do
    def bytes_of(preamble)
      script = <<~RUBY
        #{preamble}
        require "acemq/amqp"
        require "bigdecimal"
        require "delegate"
        require "uri"
        Point = Struct.new(:x, :at)
        class Order
          def initialize = @secret = 1
          def to_h = { id: 1, at: Time.utc(2026, 1, 2, 3, 4, 5, 678_900) }
        end
        payload = {
          t: Time.utc(2026, 1, 2, 3, 4, 5, 678_900), local: Time.new(2026, 1, 2, 3, 4, 5, "+05:30"),
          dt: DateTime.new(2026, 1, 2, 3, 4, 5.25, "-03:00"), day: Date.new(2026, 1, 2), d: BigDecimal("1.10"),
          big: 2**70, f: 1.25, html: "<b>&\u2028", sym: :a, nothing: nil, list: Set[1, [2]],
          point: Point.new(1, Time.at(0).utc), order: Order.new, wrapped: SimpleDelegator.new(Order.new)
        }
        codec = AceMQ::AMQP::JSONCodec.new
        puts codec.encode(payload)
        [{ n: Float::NAN }, { "x" => 1, x: 2 }, { bad: "\\xFF" }, { o: Object.new }, { r: 1r }, { u: URI("http://h/") }]
          .each { |bad| puts((codec.encode(bad) rescue "\#{$!.class} \#{$!.message}")) }
      RUBY
      out, status = Open3.capture2e(RbConfig.ruby, "-w", *$LOAD_PATH.flat_map { |path| ["-I", path] }, "-e", script)
      raise out unless status.success?

      out.lines.grep_v(/warning:/).join
    end

    it "writes the same bytes and refuses the same payloads" do
      plain = bytes_of("")
      active_support = bytes_of(<<~RUBY)
        require "active_support"
        require "active_support/all"
        ActiveSupport::JSON::Encoding.time_precision = 0
        ActiveSupport::JSON::Encoding.use_standard_json_time_format = false
        ActiveSupport::JSON::Encoding.escape_html_entities_in_json = true
        Time.zone = "Tokyo"
      RUBY

      expect(active_support).to eq(plain)
      expect(plain.lines.drop(1)).to all(start_with("AceMQ::AMQP::EncodeError"))
      expect(plain.lines.first).to include('"t":"2026-01-02T03:04:05.678Z"', '"d":"1.1"', '"html":"<b>&')
    end

    it "writes a time with zone like any other time" do
      out = bytes_of(<<~RUBY).lines.first
        require "active_support"
        require "active_support/all"
        require "acemq/amqp"
        puts AceMQ::AMQP::JSONCodec.new.encode(ActiveSupport::TimeZone["Tokyo"].at(Rational(5_678, 1000)))
      RUBY

      expect(out).to eq(%("1970-01-01T09:00:05.678+09:00"\n))
    end
  end

  describe "#decode" do
    it "gives String keys, or Symbols when asked" do
      expect(codec.decode('{"a":{"b":1}}')).to eq("a" => { "b" => 1 })
      expect(described_class.new(symbolize_names: true).decode('{"a":{"b":1}}')).to eq(a: { b: 1 })
    end

    it "reads bytes as they come from the wire" do
      expect(codec.decode('"é"'.b)).to eq("é")
    end

    ["", "{", "NaN", "{\"a\":\"\xFF\"}", ("[" * 200) + ("]" * 200)].each do |body|
      it "refuses #{body[0, 12].inspect}" do
        expect { codec.decode(body) }.to raise_error(AceMQ::AMQP::DecodeError, /not JSON/)
      end
    end

    it "quotes little of a body that it cannot read" do
      expect { codec.decode("{#{"x" * 10_000}") }
        .to raise_error(AceMQ::AMQP::DecodeError) { |error| expect(error.message.size).to be < 300 }
    end
  end

  it "reads JSON under its names, and what states nothing" do
    readable = [nil, "", "application/json", "Application/JSON; charset=utf-8", "text/json", "application/vnd.x+json"]

    expect(readable).to all(satisfy { |type| codec.can_decode?(type) })
    expect(codec.can_decode?("text/plain")).to be(false)
  end
end
