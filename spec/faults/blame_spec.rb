# frozen_string_literal: true

# Many messages on the way at once, some of which cannot arrive: who pays for it?
RSpec.describe "Blame with many in flight", :broker do
  long = ENV["ACEMQ_LONG"] == "1"
  rounds = long ? 20 : 1
  rows_wanted = long ? 10_000 : 1_000
  destinations = 200
  unbound = 14
  missing = 3
  in_flight = 1_000

  on_each_database(:postgres, :mariadb) do |name|
    before(:context) { make_outbox }
    before { empty("acemq_outbox") }

    let(:amqp) { open_connection }
    let(:exchange) { "blame.#{SecureRandom.hex(4)}" }
    let(:absent) { "#{exchange}.absent" }
    let(:relay) { new_relay(amqp, batch: rows_wanted, in_flight: in_flight) }

    # @return [Array<Array(String, String)>] what cannot be reached at first, and the rest
    def places(unbound, missing, destinations)
      keys = Array.new(destinations) { |n| format("d%03d", n) }.shuffle
      bad = keys.shift(unbound).map { |key| [exchange, key] } + keys.shift(missing).map { |key| [absent, key] }
      [bad, keys.map { |key| [exchange, key] }]
    end

    def bind(queue, places)
      places.map(&:first).uniq.each { |exchange| amqp.declare_exchange(exchange, kind: "direct", auto_delete: true) }
      places.each { |exchange, key| amqp.bind(queue: queue, exchange: exchange, routing_key: key) }
    end

    # @return [Hash{Array(String, String) => Array<String>}] ids by destination, in order
    def fill(places, count)
      written = places.cycle.first(count).shuffle.each_with_index.group_by(&:first)
      written = written.transform_values { |found| found.map { |_, n| format("m-%05d", n) } }
      all = written.flat_map { |place, ids| ids.map { |id| [id, place] } }.sort
      all.each_slice(1_000) do |slice|
        ActiveRecord::Base.transaction { slice.each { |id, (exchange, key)| put(id, exchange: exchange, to: key) } }
      end
      written
    end

    # In the order of their arrival.
    def ids_by_place(queue)
      drain(amqp, queue).group_by(&:routing_key).transform_values { |found| found.map(&:message_id) }
    end

    def by_key(written)
      written.transform_keys(&:last)
    end

    durable = name == :postgres # so that the normal run has both
    rounds.times do |round|
      kind = durable == round.even? ? "durable" : "transient"

      it "is each bad destination's head's alone: #{rows_wanted} rows, #{kind} queues, round #{round + 1}" do
        queue = new_queue(amqp, durable: kind == "durable")
        bad, good = places(unbound, missing, destinations)
        bind(queue, good)
        written = fill(bad + good, rows_wanted)

        expect { relay.sweep }.to raise_error(AceMQ::AMQP::PublishError)

        expect(charged).to eq(written.slice(*bad).to_h { |_, ids| [ids.first, 1] })
        expect(marked).to match_array(written.slice(*good).values.flatten)
        expect(leased).to be_empty
        expect(rows.count { |row| row["last_error"] }).to eq bad.size
        expect(ids_by_place(queue)).to eq by_key(written.slice(*good))

        bind(queue, bad)
        expect(relay.sweep).to eq written.slice(*bad).values.flatten.size
        expect(ids_by_place(queue)).to eq by_key(written.slice(*bad))
        expect(charged.size).to eq bad.size
      end
    end
  end
end
