# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Interceptors, :consuming do
  let(:transport) { AceMQ::Testing::FakeTransport.new }
  let(:connection) { fake_connection(origin: "shop@host") }
  let(:ack) { AceMQ::AMQP::Ack }
  let(:log) { [] }

  # Notes which of its hooks was called.
  def recorder(name, order: nil, **failing)
    log = self.log
    hooks = described_class::HOOKS
    Class.new do
      define_method(:order) { order } if order
      hooks.each do |hook|
        define_method(hook) do |*arguments|
          log << [name, hook, *arguments.drop(1)]
          raise failing[hook] if failing[hook]
        end
      end
    end.new
  end

  describe "of publishing" do
    it "may change everything before it is encoded" do
      connection.intercept_publish do |context|
        context.set_header("tenant", "acme")
        context.routing_key = "eu.#{context.routing_key}"
        context.exchange = "shop"
        context.payload = context.payload.merge("b" => 2)
        context.reply_to = "answers"
        context.mandatory = true
      end
      envelope = connection.publish({ "a" => 1 }, to: "order.placed", type: "order")

      expect(transport.published.last)
        .to have_attributes(exchange: "shop", routing_key: "eu.order.placed", body: '{"a":1,"b":2}', reply_to: "answers",
                            mandatory: true, headers: include("tenant" => "acme", "x-acemq-type" => "order"))
      expect(envelope).to have_attributes(headers: { "tenant" => "acme" }, origin: "shop@host")
    end

    it "may change the envelope, but no header of the library by name" do
      connection.intercept_publish { |context| context.envelope = context.envelope.with(type: "other") }

      expect(connection.publish({}, to: "q").type).to eq("other")
      connection.intercept_publish { |context| context.set_header("x-acemq-id", "1") }
      expect { connection.publish({}, to: "q") }.to raise_error(ArgumentError, /x-acemq-id/)
    end

    it "is in order on the way in, and the other way round on the way out" do
      connection.intercept_publish(recorder(:second)).intercept_publish(recorder(:third)).intercept_publish(recorder(:first, order: -1))
      connection.intercept_publish(recorder(:last), order: 5)
      connection.publish({}, to: "q")

      expect(log.map(&:first)).to eq(%i[first second third last last third second first])
      expect(log.map { |entry| entry[1] }).to eq(([:before_publish] * 4) + ([:after_confirm] * 4))
    end

    it "aborts the publish by raising before it, and only then" do
      connection.intercept_publish(recorder(:bad, after_confirm: IOError.new("late")))

      expect { connection.publish({}, to: "q") }.to output(/bad|after_confirm failed, which changes nothing: IOError: late/).to_stderr
      connection.intercept_publish(recorder(:worse, before_publish: IOError.new("no")))
      expect { connection.publish({}, to: "q") }.to raise_error(IOError, "no")
      expect(transport.published.size).to eq(1)
    end

    it "does not hide from its caller what is no error of its own: a failed expectation, a timeout of the application's" do
      failure = RSpec::Expectations::ExpectationNotMetError.new("expected")
      connection.intercept_publish(recorder(:strict, after_confirm: failure))

      expect { connection.publish({}, to: "q") }.to raise_error(failure)
      expect(transport.published.size).to eq(1)
    end

    it "is told of what was not confirmed" do
      connection.intercept_publish(recorder(:one))
      transport.missing!("gone")

      expect { connection.publish({}, to: "gone", mandatory: true) }.to raise_error(AceMQ::AMQP::PublishError)
      expect(log.last).to match([:one, :on_error, AceMQ::AMQP::PublishError])
    end

    it "sees every message of a batch, before any is sent" do
      seen = []
      connection.intercept_publish { |context| seen << [context.payload, transport.published.size] }
      connection.publish_all([1, 2], to: "q")

      expect(seen).to eq([[1, 0], [2, 0]])
    end

    it "does not see what a relay publishes" do
      connection.intercept_publish(recorder(:one))
      store = AceMQ::AMQP::Patterns::InMemoryOutboxStore.new
      store.add(AceMQ::AMQP::Patterns.record(connection, {}, to: "q"))

      expect(AceMQ::AMQP::Patterns::OutboxRelay.new(connection, store).sweep).to eq(1)
      expect(log).to be_empty
    end
  end

  describe "of consuming" do
    def handle(payload = { "n" => 1 }, **fields, &handler)
      delivery = fake(payload, **fields)
      connection.consume("orders", &handler).handle(delivery.delivery)
      delivery
    end

    it "reaches the handler with what it changes, and no copy" do
      seen = nil
      connection.intercept_consume { |context| context.set_header("user", context.payload["n"]) }
      handle { |message| (seen = message.envelope.headers) && ack.reject }

      expect(seen).to eq("user" => 1)
      expect(transport.published.last.headers).not_to have_key("user")
    end

    it "knows what becomes of the delivery once that is decided" do
      settlements = []
      connection.intercept_consume(Class.new do
        define_method(:after_handle) { |context, answer| settlements << [context.queue, context.settlement.outcome, answer.action] }
      end.new)
      handle { ack.park("why") }
      handle { nil }

      expect(settlements).to eq([["orders", "parked", :park], ["orders", "rejected", :reject]])
    end

    it "is in order on the way in, and the other way round on the way out" do
      connection.intercept_consume(recorder(:outer)).intercept_consume(recorder(:inner))
      handle { log << [:handler] && ack.accept }

      expect(log.map { |entry| entry.first(2) }).to eq([%i[outer before_handle], %i[inner before_handle], [:handler],
                                                        %i[inner after_handle], %i[outer after_handle]])
    end

    it "is told of failures, of the handler's and of what cannot be decoded" do
      connection.intercept_consume(recorder(:one))
      handle { raise IOError, "down" }
      handle("{broken") { ack.accept }

      expect(log.select { |entry| entry[1] == :on_error }.map(&:last)).to match([IOError, AceMQ::AMQP::DecodeError])
      expect(log.count { |entry| entry[1] == :after_handle }).to eq(2)
    end

    it "fails the message by raising before it, and changes nothing by raising after it" do
      connection.intercept_consume(recorder(:late, after_handle: NotImplementedError.new("late")))
      delivery = nil
      expect { delivery = handle { ack.accept } }.to output(/after_handle failed/).to_stderr
      expect(delivery).to be_acked
      expect(transport.published).to be_empty

      connection.intercept_consume { raise IOError, "no" }
      expect { handle { log << :called } }.to output.to_stderr
      expect(transport.published.last.headers["x-acemq-error"]).to end_with("IOError: no")
      expect(log).not_to include(:called)
    end
  end

  it "leaves a handler's answer as it is, whatever is raised after it on the consumer's thread" do
    odd = Class.new(Exception) # rubocop:disable Lint/InheritException -- as those of RSpec and Minitest
    connection.intercept_consume(recorder(:odd, after_handle: odd.new("late"), on_error: odd.new("later")))
    connection.consume("orders") { |message| message.payload["n"] == 1 ? ack.accept : raise(IOError, "down") }
    deliveries = nil

    expect { deliveries = [1, 2].map { |n| transport.deliver("orders", { "n" => n }) } }
      .to output(/after_handle failed.*late.*on_error failed.*later/m).to_stderr
    expect(deliveries.map(&:answers)).to eq([[:ack], [:ack]])
    expect(transport.published_to("orders.dlq").size).to eq(1)
  end

  it "lets an exit through" do
    connection.intercept_consume(recorder(:last, after_handle: SystemExit.new))
    connection.consume("orders") { ack.accept }

    expect { transport.deliver("orders") }.to raise_error(SystemExit)
  end

  it "refuses what has no hook, and an order that is none" do
    expect { connection.intercept_publish(Object.new) }.to raise_error(ArgumentError, /no interceptor: .*before_publish/)
    expect { connection.intercept_consume }.to raise_error(ArgumentError, /NilClass is no interceptor/)
    expect { connection.intercept_consume(recorder(:a), order: "first") }.to raise_error(ArgumentError, /order must be an Integer/)
    expect { connection.intercept_publish(recorder(:a)) { nil } }.to raise_error(ArgumentError, /not both/)
  end

  it "can be listed" do
    one = recorder(:one)
    connection.intercept_publish(one).intercept_consume(one)

    expect(connection.interceptors).to have_attributes(publish: [one], consume: [one])
  end
end
