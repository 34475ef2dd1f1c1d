# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Codecs do
  it "builds codecs by name" do
    expect(described_class.build(:json)).to be_a(AceMQ::AMQP::JSONCodec)
    expect(described_class.build("text")).to be_a(AceMQ::AMQP::StringCodec)
    expect(described_class.build("bytes")).to be_a(AceMQ::AMQP::BytesCodec)
  end

  it "lists what it knows when asked for what it does not" do
    expect { described_class.build("cbor") }.to raise_error(ArgumentError, /"cbor".*bytes, json, string, text/)
  end
end

RSpec.describe AceMQ::AMQP::Codec do
  let(:counting) do
    Class.new do
      def content_type = "application/x-count"
      def encode(payload) = payload.to_s
      def decode(body) = body.to_i
      def can_decode?(type) = type == content_type
    end
  end

  it "knows a codec by what it answers" do
    expect(described_class.codec?(counting.new)).to be(true)
    expect { described_class.check!(Object.new) }.to raise_error(ArgumentError, /content_type, encode, decode, can_decode\?/)
  end

  it "gives the content type to a decode that wants it" do
    wanting = Class.new(counting) { define_method(:decode) { |body, type| [body, type] } }.new

    expect(described_class.decode(counting.new, "7", "t")).to eq(7)
    expect(described_class.decode(wanting, "7", "t")).to eq(%w[7 t])
  end

  it "refuses a body that is no String" do
    broken = Class.new(counting) { def encode(payload) = payload }.new

    expect { described_class.encode(broken, 7) }.to raise_error(AceMQ::AMQP::EncodeError, /Integer instead of a String/)
  end
end

RSpec.describe AceMQ::AMQP::BytesCodec do
  it "leaves bytes alone" do
    bytes = (0..255).to_a.pack("C*")

    expect(described_class.new.decode(described_class.new.encode(bytes))).to eq(bytes)
  end

  it "writes nothing but Strings" do
    expect { described_class.new.encode({}) }.to raise_error(AceMQ::AMQP::EncodeError, /Hash/)
  end
end

RSpec.describe AceMQ::AMQP::StringCodec do
  subject(:codec) { described_class.new }

  it "writes UTF-8, whatever the text was in" do
    expect(codec.encode("caf\xE9".dup.force_encoding("ISO-8859-1"))).to eq("café")
    expect { codec.encode("\xFF") }.to raise_error(AceMQ::AMQP::EncodeError)
  end

  it "reads the charset that a body states" do
    expect(codec.decode("caf\xE9".b, "text/plain; charset=ISO-8859-1")).to eq("café")
    expect(codec.decode("café".b)).to eq("café")
  end

  it "says when a body is not the text it claims to be" do
    expect { codec.decode("\xFF") }.to raise_error(AceMQ::AMQP::DecodeError)
    expect { codec.decode("x", "text/plain; charset=klingon") }.to raise_error(AceMQ::AMQP::DecodeError)
  end
end

RSpec.describe AceMQ::AMQP::CompositeCodec do
  subject(:codec) { described_class.new(AceMQ::AMQP::JSONCodec.new, AceMQ::AMQP::StringCodec.new) }

  it "writes with the first and reads by content type" do
    expect(codec.encode({ a: 1 })).to eq('{"a":1}')
    expect(codec.content_type).to eq("application/json")
    expect(codec.decode("{}", "application/json")).to eq({})
    expect(codec.decode("{}", "text/plain")).to eq("{}")
  end

  it "tries all of them on a body that states no content type" do
    expect(codec.decode('{"a":1}')).to eq("a" => 1)
    expect(codec.decode("hello")).to eq("hello")
    expect { codec.decode("\xFF") }.to raise_error(AceMQ::AMQP::DecodeError, /none of/)
  end

  it "names the content type that nothing reads" do
    expect { codec.decode("x", "image/png") }.to raise_error(AceMQ::AMQP::DecodeError, %r{image/png})
  end

  it "needs codecs" do
    expect { described_class.new }.to raise_error(ArgumentError)
    expect { described_class.new(:json) }.to raise_error(ArgumentError, /not a codec/)
  end
end
