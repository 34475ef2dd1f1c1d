# frozen_string_literal: true

RSpec.describe AceMQ::AMQP::Patterns, ".idempotent" do
  let(:ack) { AceMQ::AMQP::Ack }

  # Keys in a Hash; what it offers is chosen per example.
  full_store = Class.new do
    attr_reader :states, :calls

    def initialize
      @states = {}
      @calls = []
    end

    def claim(key)
      @calls << [:claim, key]
      return :duplicate if @states[key] == :confirmed
      return :in_progress if @states[key]

      @states[key] = :claimed
      :claimed
    end

    def confirm(key)
      @calls << [:confirm, key]
      @states[key] = :confirmed
    end

    def forget(key)
      @calls << [:forget, key]
      @states.delete(key)
    end
  end

  let(:store) { full_store.new }
  let(:message) { message_with("m-1") }

  def message_with(id, payload = {})
    AceMQ::AMQP::Message.new(payload: payload, envelope: AceMQ::AMQP::Envelope.new(id: id))
  end

  def idempotent(store = self.store, **options, &handler)
    described_class.idempotent(store, **options, &handler)
  end

  def calls_of(name)
    store.calls.select { |called, _| called == name }
  end

  it "runs the handler once for one key and accepts its duplicates" do
    runs = 0
    handler = idempotent { runs += 1 and ack.accept }

    answers = Array.new(3) { handler.call(message) }

    expect(answers).to all(be_accept)
    expect(runs).to eq 1
  end

  it "is a lambda of one argument" do
    expect(idempotent { ack.accept }).to be_a(Proc).and be_lambda.and have_attributes(arity: 1)
  end

  it "has a message that somebody else is at come back later, without an attempt" do
    store.claim("m-1")

    answer = idempotent(in_progress_delay: 0.5) { raise "not run" }.call(message)

    expect(answer).to be_in_progress
    expect(answer.delay).to eq 0.5
  end

  it "confirms only what the handler accepted, and forgets the rest" do
    answers = { accept: ack.accept, retry: ack.retry("no"), reject: ack.reject("no"), park: ack.park("no"),
                in_progress: ack.in_progress(1), nothing: nil }

    answers.each do |name, answer|
      expect(idempotent { answer }.call(message_with(name.to_s))).to eq answer
    end

    expect(calls_of(:confirm).map(&:last)).to eq ["accept"]
    expect(calls_of(:forget).map(&:last)).to eq %w[retry reject park in_progress nothing]
  end

  [RuntimeError, NotImplementedError, Interrupt, SystemStackError].each do |error|
    it "forgets the key when the handler raises #{error}, and raises it again" do
      expect { idempotent { raise error, "handler" }.call(message) }.to raise_error(error, "handler")

      expect(store.states).to be_empty
      expect(idempotent { ack.accept }.call(message)).to be_accept
    end
  end

  it "forgets the key when the handler's thread is killed" do
    entered = Thread::Queue.new
    thread = Thread.new { idempotent { (entered << 1) && sleep }.call(message) }
    entered.pop
    thread.kill.join

    expect(store.states).to be_empty
  end

  it "does not let a failing forget hide what the handler raised or answered" do
    def store.forget(_key) = raise("forget failed")

    expect do
      expect { idempotent { raise "handler failed" }.call(message) }.to raise_error("handler failed")
      expect(idempotent { ack.retry }.call(message_with("m-2"))).to be_retry
    end.to output(/could not be given back.*forget failed/).to_stderr
  end

  it "keeps the claim when the confirm of finished work fails" do
    def store.confirm(_key) = raise("confirm failed")
    handler = idempotent { ack.accept }

    expect { handler.call(message) }.to raise_error("confirm failed")

    expect(calls_of(:forget)).to be_empty
    expect(handler.call(message)).to be_in_progress
  end

  it "confirms once more, harmlessly, what the handler confirmed in its own transaction" do
    handler = idempotent do |m|
      store.confirm(m.envelope.id)
      ack.accept
    end

    expect(handler.call(message)).to be_accept
    expect(store.states).to eq("m-1" => :confirmed)
  end

  it "retries when the store raises while claiming, and does not run the handler" do
    def store.claim(_key) = raise(IOError, "no database")

    answer = idempotent { raise "not run" }.call(message)

    expect(answer).to be_retry
    expect(answer.error).to be_an(IOError)
  end

  it "takes an answer that is none of the three for a broken store" do
    def store.claim(_key) = true

    answer = idempotent { raise "not run" }.call(message)

    expect(answer).to be_retry
    expect(answer.error.message).to include("true", ":in_progress")
  end

  describe "the key" do
    it "is the message's id, or what key: makes of the message" do
      idempotent { ack.accept }.call(message)
      idempotent(key: ->(m) { "charge:#{m.payload["order_id"]}" }) { ack.accept }
        .call(message_with("m-2", { "order_id" => 7 }))

      expect(calls_of(:claim).map(&:last)).to eq %w[m-1 charge:7]
    end

    it "is always a String" do
      idempotent(key: ->(m) { m.payload["id"] }) { ack.accept }.call(message_with("m-1", { "id" => 17 }))

      expect(store.states.keys).to eq ["17"]
    end

    [nil, ""].each do |nothing|
      it "rejects the message when it is #{nothing.inspect}, and asks no store" do
        answer = idempotent(key: ->(_) { nothing }) { raise "not run" }.call(message)

        expect(answer).to be_reject
        expect(answer.error).to be_an(AceMQ::AMQP::FatalError)
        expect(store.calls).to be_empty
      end
    end

    it "lets a failure of the key function out: it is the handler's own" do
      expect { idempotent(key: ->(_) { raise KeyError, "no such field" }) { ack.accept }.call(message) }
        .to raise_error(KeyError)
    end
  end

  describe "stores with fewer methods" do
    def store_with(*methods, first_time: true)
      Class.new do
        define_method(:calls) { @calls ||= [] }
        methods.each do |name|
          define_method(name) do |key|
            calls << [name, key]
            first_time if name == :first_time?
          end
        end
      end.new
    end

    it "works with first_time? alone, and warns once, when it is built, that it can lose a message" do
      handler = nil
      two = store_with(:first_time?)

      expect { handler = idempotent(two) { ack.accept } }
        .to output(/\A[^\n]*first_time\? but not claim[^\n]*\n\z/).to_stderr
      expect { expect(Array.new(2) { handler.call(message) }).to all(be_accept) }.not_to output.to_stderr
    end

    it "takes first_time? false for a duplicate" do
      handler = silently { idempotent(store_with(:first_time?, first_time: false)) { raise "not run" } }

      expect(handler.call(message)).to be_accept
    end

    it "uses forget where there is one" do
      store = store_with(:first_time?, :forget)
      silently { idempotent(store) { ack.retry } }.call(message)

      expect(store.calls).to eq [[:first_time?, "m-1"], [:forget, "m-1"]]
    end

    it "uses confirm where there is one" do
      store = store_with(:first_time?, :forget, :confirm)
      silently { idempotent(store) { ack.accept } }.call(message)

      expect(store.calls).to eq [[:first_time?, "m-1"], [:confirm, "m-1"]]
    end

    it "prefers claim and does not warn" do
      expect { idempotent { ack.accept } }.not_to output.to_stderr
    end

    it "refuses a store that can neither first_time? nor claim, by name" do
      expect { idempotent(store_with(:forget, :confirm)) { ack.accept } }.to raise_error(ArgumentError, /first_time\?/)
      expect { described_class.with_idempotency(nil) }.to raise_error(ArgumentError, /NilClass.*first_time\?/)
    end

    def silently
      original = $stderr
      $stderr = StringIO.new
      yield
    ensure
      $stderr = original
    end
  end

  it "refuses at construction what could only fail later" do
    expect { idempotent }.to raise_error(ArgumentError, /block/)
    expect { idempotent(key: "order_id") { ack.accept } }.to raise_error(ArgumentError, /key:/)
    expect { idempotent(in_progress_delay: -1) { ack.accept } }.to raise_error(ArgumentError, /delay/)
  end

  it "is middleware too" do
    middleware = described_class.with_idempotency(store, key: ->(m) { "k:#{m.id}" }, in_progress_delay: 2)
    handler = middleware.call(->(_) { ack.accept })
    2.times { expect(handler.call(message)).to be_accept }
    store.claim("k:m-9")

    expect(handler.call(message_with("m-9")).delay).to eq 2.0
    expect(store.states).to include("k:m-1" => :confirmed)
  end

  it "works once for many threads on one key" do
    store = AceMQ::AMQP::Patterns::InMemoryIdempotencyStore.new
    runs = Thread::Queue.new
    handler = idempotent(store) { (runs << 1) && ack.accept }

    answers = Array.new(20) { Thread.new { handler.call(message) } }.map(&:value)

    expect(runs.size).to eq 1
    expect(answers.map(&:action).uniq - %i[accept in_progress]).to be_empty
  end
end
