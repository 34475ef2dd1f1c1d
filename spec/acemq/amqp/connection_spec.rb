# frozen_string_literal: true

require "acemq/testing"

RSpec.describe AceMQ::AMQP::Connection do
  subject(:connection) { described_class.new(transport: transport, origin: "shop@host") }

  let(:transport) { AceMQ::Testing::FakeTransport.new }

  describe ".new" do
    it "takes any object that publishes" do
      expect(described_class.new(transport: Struct.new(:publish).new)).to be_a(described_class)
    end

    it "refuses one that does not, at once" do
      expect { described_class.new(transport: Object.new) }.to raise_error(ArgumentError, /Object is no transport.*publish/)
    end

    it "refuses a codec that is none" do
      expect { described_class.new(transport: transport, codec: :json) }.to raise_error(ArgumentError, /not a codec/)
    end

    {
      prefetch: [-5, 65_536, 2.5, nil],
      retry_threshold: [Float::NAN, Float::INFINITY, -1, "30", nil]
    }.each do |name, values|
      it "refuses a #{name} that no consumer could have" do
        values.each do |value|
          expect { described_class.new(transport: transport, name => value) }
            .to raise_error(ArgumentError, /\A#{name} must be .*, not #{Regexp.escape(value.inspect)}\z/)
        end
      end
    end

    it "takes the least and the most that there is" do
      made = [0, 65_535].map { |limit| described_class.new(transport: transport, prefetch: limit, retry_threshold: 0) }

      expect(made.map(&:prefetch)).to eq [0, 65_535]
    end

    it "names a keyword that it does not know, and those that it does" do
      expect { described_class.new(transport: transport, prefetsch: 1) }
        .to raise_error(ArgumentError, /unknown keyword prefetsch; .* takes codec, origin, retry_policy, prefetch/)
      expect { described_class.open("amqp://h", hearbeat: 1) }
        .to raise_error(ArgumentError, /unknown keyword hearbeat; .*origin.*heartbeat, connection_timeout/)
    end

    it "has an origin of its own unless it is given one" do
      expect(described_class.new(transport: transport, origin: "").origin).to start_with("acemq@")
    end

    it "shows no address" do
      expect(connection.inspect).to eq(
        '#<AceMQ::AMQP::Connection transport=AceMQ::Testing::FakeTransport origin="shop@host" codec=AceMQ::AMQP::JSONCodec>'
      )
    end
  end

  describe "#publish" do
    it "hands the transport a complete message and returns the envelope as sent" do
      envelope = connection.publish({ id: 1 }, to: "order.placed", exchange: "shop", type: "order.placed.v2",
                                               headers: { tenant: "acme" })

      expect(transport.published.first)
        .to have_attributes(exchange: "shop", routing_key: "order.placed", body: '{"id":1}', content_type: "application/json",
                            message_id: envelope.id, headers: envelope.to_headers, persistent: true, mandatory: false,
                            reply_to: nil)
      expect(envelope).to have_attributes(type: "order.placed.v2", origin: "shop@host", headers: { "tenant" => "acme" })
    end

    it "calls a message without a type by its routing key" do
      expect(connection.publish({}, to: "order.placed").type).to eq("order.placed")
    end

    it "keeps the origin of an envelope that has one" do
      envelope = AceMQ::AMQP::Envelope.new(id: "m-1", origin: "other@host")

      expect(connection.publish({}, to: "q", envelope: envelope)).to have_attributes(id: "m-1", origin: "other@host")
    end

    it "encodes with the codec of the call" do
      connection.publish("bytes", to: "q", codec: AceMQ::AMQP::BytesCodec.new)

      expect(transport.published.first).to have_attributes(body: "bytes", content_type: "application/octet-stream")
    end

    it "sends no blank reply address" do
      connection.publish({}, to: "q", reply_to: "")

      expect(transport.published.first.reply_to).to be_nil
    end

    {
      "an envelope and fields" => [{ to: "q", envelope: AceMQ::AMQP::Envelope.new(id: "m"), type: "t" }, /either envelope:/],
      "a field that does not exist" => [{ to: "q", subject: "x" }, /:subject.*correlation_id/],
      "a routing key that is too long" => [{ to: "é" * 128 }, /routing key .* 256 bytes/],
      "an exchange that is too long" => [{ to: "q", exchange: "e" * 256 }, /exchange is 256 bytes/],
      "a message id that is too long" => [{ to: "q", id: "i" * 256 }, /message id is 256 bytes/],
      "a reply address that is too long" => [{ to: "q", reply_to: "r" * 256 }, /reply_to is 256 bytes/],
      "an envelope that is none" => [{ to: "q", envelope: {} }, /must be an Envelope/]
    }.each do |what, (options, message)|
      it "refuses #{what} before anything is sent" do
        expect { connection.publish({}, **options) }.to raise_error(ArgumentError, message)
        expect(transport.published).to be_empty
      end
    end

    it "raises what the transport raises" do
      transport.blocked_reason = "memory"

      expect { connection.publish({}, to: "q") }.to raise_error(AceMQ::AMQP::PublishingPausedError, /memory/)
    end
  end

  # Applications wrote their fakes against older versions of the family.
  describe "a transport that knows fewer keywords" do
    let(:transport) do
      Class.new do
        attr_reader :published

        def publish(exchange:, routing_key:, body:, content_type: nil, message_id: nil, headers: {}, persistent: true)
          raise AceMQ::AMQP::PublishError, "refused" if routing_key == "bad"

          (@published ||= []) << [exchange, routing_key, body, content_type, headers, persistent]
          message_id
        end

        def close = (@closed = true)
      end.new
    end

    it "is given those that it knows" do
      connection.publish({ a: 1 }, to: "q", mandatory: true, reply_to: "r")

      expect(transport.published.first.first(3)).to eq(["", "q", '{"a":1}'])
    end

    it "is given a batch one by one" do
      expect(connection.publish_all([1, 2], to: "q").size).to eq(2)
      expect(transport.published.map { |message| message[2] }).to eq(%w[1 2])
    end

    it "is neither blocked nor closed for all that is known" do
      expect(connection).to have_attributes(blocked?: false, blocked_reason: nil, open?: true)
    end

    it "is named with what it lacks when something else is asked of it" do
      expect { connection.pull("q") }.to raise_error(AceMQ::AMQP::ConfigurationError, /has no pull/)
    end

    it "is closed without a timeout that it does not know" do
      expect { connection.close }.not_to raise_error
    end
  end

  describe "#publish_all" do
    it "returns the envelopes in the order of the payloads" do
      envelopes = connection.publish_all([1, 2, 3], to: "q", type: "n")

      expect(envelopes.map(&:id)).to eq(transport.published.map(&:message_id))
      expect(transport.published.map(&:body)).to eq(%w[1 2 3])
      expect(envelopes.map(&:type).uniq).to eq(["n"])
    end

    it "does nothing with nothing" do
      expect(connection.publish_all([], to: "q")).to eq([])
    end

    it "takes one envelope per payload" do
      envelopes = [AceMQ::AMQP::Envelope.new(id: "a"), AceMQ::AMQP::Envelope.new(id: "b")]

      expect(connection.publish_all([1, 2], to: "q", envelopes: envelopes).map(&:id)).to eq(%w[a b])
    end

    it "refuses what does not fit together" do
      expect { connection.publish_all({ a: 1 }, to: "q") }.to raise_error(ArgumentError, /must be an Array/)
      expect { connection.publish_all([1], to: "q", envelopes: []) }.to raise_error(ArgumentError, /1 payloads and 0/)
      expect { connection.publish_all([1], to: "q", envelopes: [nil], type: "t") }.to raise_error(ArgumentError, /either/)
    end

    it "sends nothing when one payload cannot be encoded" do
      expect { connection.publish_all([1, Float::NAN], to: "q") }.to raise_error(AceMQ::AMQP::EncodeError)
      expect(transport.published).to be_empty
    end

    context "when some messages fail" do
      let(:outcomes) { [] }
      let(:transport) do
        given = outcomes
        Class.new(AceMQ::Testing::FakeTransport) { define_method(:publish_all) { |_messages| given } }.new
      end

      def failure(*results)
        outcomes.replace(results)
        connection.publish_all(Array.new(results.size, 1), to: "q")
      end

      let(:returned) do
        AceMQ::AMQP::PublishError.new("nobody is bound", unroutable: true, scope: :destination, routing_key: "q")
      end
      let(:paused) { AceMQ::AMQP::PublishingPausedError.new("memory") }

      it "counts them in one error, and quotes the first" do
        expect { failure("a", returned, paused) }.to raise_error(
          AceMQ::AMQP::PublishError,
          "2 of 3 messages were not confirmed; 1 were. The first failure was: nobody is bound"
        ) { |error| expect(error).to have_attributes(unroutable?: false, scope: :destination, routing_key: "q") }
      end

      it "is unroutable, or paused, only if all of them are" do
        expect { failure(returned, returned) }.to(raise_error { |error| expect(error).to be_unroutable })
        expect { failure(paused, paused) }.to raise_error(AceMQ::AMQP::PublishingPausedError)
      end
    end
  end

  describe "declarations" do
    it "declares quorum queues, and others when asked" do
      connection.declare_queue("a")
      connection.declare_queue("b", durable: false)

      expect(transport.declared_queues.map { |queue| [queue.name, queue.options[:queue_type], queue.options[:arguments]] })
        .to eq([["a", :quorum, { "x-queue-type" => "quorum" }], ["b", :classic, {}]])
    end

    it "lets the broker choose a name" do
      expect(connection.declare_queue("", exclusive: true)).not_to be_empty
    end

    it "spells argument names as Strings, which is all the broker reads" do
      connection.declare_exchange("e", kind: :topic, arguments: { "alternate-exchange": "other" })

      expect(transport.declared_exchanges.first.options).to include(kind: "topic", arguments: { "alternate-exchange" => "other" })
    end

    it "knows the kinds of exchanges" do
      %w[direct fanout topic headers x-delayed-message].each { |kind| connection.declare_exchange("e", kind: kind) }

      ["", "x-", "topics", nil].each do |kind|
        expect { connection.declare_exchange("e", kind: kind) }.to raise_error(ArgumentError, /"e".*direct, fanout, topic/)
      end
    end

    it "refuses names that are empty or too long" do
      expect { connection.declare_exchange("", kind: :topic) }.to raise_error(ArgumentError, /exchange is empty/)
      expect { connection.bind(queue: "q", exchange: "") }.to raise_error(ArgumentError, /exchange is empty/)
      expect { connection.declare_queue("q" * 256) }.to raise_error(ArgumentError, /256 bytes/)
    end

    it "binds, counts, pulls and deletes" do
      connection.declare_queue("q")
      connection.bind(queue: "q", exchange: "e", routing_key: "k")
      connection.publish({ a: 1 }, to: "k", exchange: "e")

      expect(connection.message_count("q")).to eq(1)
      expect(connection.pull("q")).to have_attributes(body: '{"a":1}', routing_key: "k")
      expect(connection.pull("q")).to be_nil
      expect { connection.delete_queue("q") }.to change { connection.queue_exists?("q") }.from(true).to(false)
    end
  end

  describe "#close" do
    let(:closing) { [] }

    def relay(name, failing: nil)
      log = closing
      Class.new do
        define_method(:close) do |timeout:|
          log << [name, timeout]
          raise failing if failing
        end
      end.new
    end

    it "closes what publishes through it before the transport, within one deadline" do
      log = closing
      transport.define_singleton_method(:close) { |timeout:| log << [:transport, timeout] }
      connection.register(relay(:first)).register(relay(:second))

      connection.close(timeout: 5)

      expect(closing.map(&:first)).to eq(%i[first second transport])
      expect(closing.map(&:last)).to all(be_between(0, 5)).and(satisfy { |left| left == left.sort.reverse })
    end

    it "leaves out what has been closed already" do
      gone = relay(:gone)
      connection.register(gone).unregister(gone).close

      expect(closing).to be_empty
    end

    it "closes everything before it raises the first failure" do
      connection.register(relay(:bad, failing: "first")).register(relay(:worse, failing: "second"))

      expect { connection.close }.to raise_error("first")
      expect(closing.map(&:first)).to eq(%i[bad worse])
      expect(transport).not_to be_open
    end

    it "may be called twice" do
      connection.register(relay(:only))
      2.times { connection.close }

      expect(closing.size).to eq(1)
    end

    it "lets a relay take itself off the list" do
      owner = connection
      connection.register(Class.new { define_method(:close) { owner.unregister(self) } }.new)

      expect { connection.close }.not_to raise_error
    end

    it "refuses a timeout that is none" do
      expect { connection.close(timeout: nil) }.to raise_error(ArgumentError, /timeout/)
    end
  end

  describe "#blocked?" do
    it "passes on what the transport says" do
      transport.blocked_reason = "disk"

      expect(connection).to have_attributes(blocked?: true, blocked_reason: "disk")
    end
  end
end
