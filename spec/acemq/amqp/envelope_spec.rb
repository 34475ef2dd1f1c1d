# frozen_string_literal: true

require "json"

RSpec.describe AceMQ::AMQP::Envelope do
  fixtures = JSON.parse(File.read(File.expand_path("../../fixtures/envelopes.json", __dir__)))

  def reserved(envelope, name)
    envelope.to_headers["x-acemq-#{name}"]
  end

  describe "what the other libraries of the family write" do
    fixtures.each do |fixture|
      it "reads and writes the #{fixture["name"]} envelope without a difference" do
        envelope = described_class.from_headers(fixture["headers"], fixture["routing_key"])

        expect(envelope.to_headers(fixture["routing_key"])).to eq(fixture["headers"])
        expect(envelope.id).to eq(fixture["message_id"])
      end
    end
  end

  describe ".new" do
    it "makes an id that sorts by time, and is its own conversation" do
      first = described_class.new
      second = described_class.new

      expect(first.id).to match(/\A\h{8}-\h{4}-7\h{3}-[89ab]\h{3}-\h{12}\z/)
      expect(first.id).not_to eq(second.id)
      expect(first.correlation_id).to eq(first.id)
    end

    it "takes an empty id for none" do
      expect(described_class.new(id: "").id).not_to be_empty
    end

    it "counts versions and attempts from 1" do
      envelope = described_class.new(version: 0, attempt: -3)

      expect([envelope.version, envelope.attempt]).to eq([1, 1])
    end

    it "keeps the millisecond of first_seen, and nothing below it" do
      envelope = described_class.new(first_seen: Time.at(1_788_968_630, 38_999, :usec))

      expect(reserved(envelope, "first-seen")).to eq(1_788_968_630_038)
      expect(envelope.first_seen).to eq(Time.at(1_788_968_630, 38, :millisecond))
    end

    it "keeps every millisecond through any number of readings" do
      start = 1_767_323_045_000
      1000.times do |ms|
        envelope = described_class.from_headers({ "x-acemq-first-seen" => start + ms })
        again = described_class.new(first_seen: envelope.first_seen).with(attempt: 2)

        expect(reserved(again, "first-seen")).to eq(start + ms)
      end
    end

    it "refuses the library's header names, listing them" do
      expect { described_class.new(headers: { "x-acemq-zz" => 1, "x-acemq-id": 2, "ok" => 3 }) }
        .to raise_error(ArgumentError, /x-acemq-id, x-acemq-zz/)
    end

    it "refuses a header that AMQP cannot carry" do
      expect { described_class.new(headers: { "ratio" => Float::NAN }) }.to raise_error(ArgumentError, /header ratio/)
    end

    it "refuses a field that does not exist" do
      expect { described_class.new(subject: "x") }.to raise_error(ArgumentError, /subject/)
    end

    it "is frozen, with its headers" do
      envelope = described_class.new(headers: { a: 1 })

      expect(envelope).to be_frozen
      expect(envelope.headers).to be_frozen
    end
  end

  describe ".from_headers" do
    it "takes the routing key for the type of a message that names none" do
      expect(described_class.from_headers({}, "order.placed").type).to eq("order.placed")
    end

    it "recognises a message of another producer by its AMQP message id" do
      expect(described_class.from_headers({ "tenant" => "a" }, "k", message_id: "m-1").id).to eq("m-1")
    end

    it "believes the header before the AMQP message id" do
      expect(described_class.from_headers({ "x-acemq-id" => "h-1" }, "k", message_id: "m-1").id).to eq("h-1")
    end

    it "makes up an id when there is neither" do
      expect(described_class.from_headers(nil, "k", message_id: "").id).not_to be_empty
    end

    it "reads numbers of any width and numbers written as text" do
      envelope = described_class.from_headers({ "x-acemq-attempt" => "3", "x-acemq-version" => 2,
                                                "x-acemq-first-seen" => "1767323045678" })

      expect(envelope).to have_attributes(attempt: 3, version: 2, first_seen_ms: 1_767_323_045_678)
    end

    it "takes what is no number for absent" do
      [true, "soon", 1.5, nil, "9" * 30, 2**70, []].each do |junk|
        envelope = described_class.from_headers({ "x-acemq-attempt" => junk, "x-acemq-version" => junk,
                                                  "x-acemq-first-seen" => junk })

        expect(envelope).to have_attributes(attempt: 1, version: 1)
        expect(envelope.age).to be_between(0, 60)
      end
    end

    it "drops reserved names that it does not know" do
      envelope = described_class.from_headers({ "x-acemq-later" => 1, "tenant" => "a" })

      expect(envelope.headers).to eq("tenant" => "a")
      expect(envelope.to_headers).not_to have_key("x-acemq-later")
    end

    it "carries the headers of a pipeline as they are" do
      route = { "x-acemq-route" => "[]", "x-acemq-route-position" => 2, "x-acemq-route-id" => "r" }

      expect(described_class.from_headers(route).to_headers).to include(route)
    end

    it "accepts headers that it would not write" do
      envelope = described_class.from_headers({ "bad" => Float::NAN, "x-acemq-origin" => "\xFF" })

      expect(envelope.with(attempt: 2).headers["bad"]).to be_nan
      expect(envelope.origin).to eq("")
    end
  end

  describe "#to_headers" do
    it "writes only what is said, and the routing key for an empty type" do
      envelope = described_class.new(id: "m-1", first_seen: Time.at(1))

      expect(envelope.to_headers("order.placed"))
        .to eq("x-acemq-id" => "m-1", "x-acemq-type" => "order.placed", "x-acemq-version" => 1,
               "x-acemq-correlation" => "m-1", "x-acemq-attempt" => 1, "x-acemq-first-seen" => 1000)
    end
  end

  describe "#with" do
    it "changes a copy" do
      envelope = described_class.new(type: "a", headers: { "x" => 1 })
      changed = envelope.with(type: "b", attempt: 4)

      expect(changed).to have_attributes(id: envelope.id, type: "b", attempt: 4, headers: { "x" => 1 })
      expect(envelope.type).to eq("a")
    end

    it "checks headers that are changed" do
      expect { described_class.new.with(headers: { "x-acemq-id" => "x" }) }.to raise_error(ArgumentError)
    end
  end

  it "equals another that would be written alike" do
    fields = { id: "m", type: "t", first_seen: Time.at(5) }

    expect(described_class.new(**fields)).to eq(described_class.new(**fields))
    expect(described_class.new(**fields)).not_to eq(described_class.new(**fields, attempt: 2))
  end
end
