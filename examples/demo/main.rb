# frozen_string_literal: true

# The main job from end to end, on real servers. `bin/demo` runs it; read it from the bottom of the class upwards.

require "optparse"
require_relative "places"
require_relative "shop"
require_relative "outbox_view"
require_relative "relay_process"
require_relative "progress"
require_relative "account"

class Demo
  Unfinished = Class.new(StandardError)

  OUT_OF_STOCK_EVERY = 8
  DELIVERED_AGAIN_EVERY = 10
  PATIENCE = 120 # seconds without any progress

  def initialize(orders:, database:)
    @orders = orders
    @database = database
  end

  # @return [Boolean] whether everything reconciles
  def run
    open_shop
    place_orders
    kill_a_relay_in_the_middle
    let_another_relay_finish
    read_the_queue_back
    close_the_account
  ensure
    clean_up
  end

  private

  def open_shop
    say "starting RabbitMQ#{" and #{@database}" unless @database == "sqlite"} ..." unless ENV["ACEMQ_URL"]
    @places = Places.prepare(@database)
    @places.connect_database
    refuse_tables_of_somebody_else
    Shop.create_tables
    @opened = true
    @connection = AceMQ::AMQP::Connection.open(@places.broker_url, client_name: "demo")
    @connection.delete_queue(Shop::QUEUE) # what a demo that was killed left behind
    Shop.declare_topology(@connection)
  end

  def place_orders
    progress = Progress.new("placing orders", @orders)
    @rolled_back = 0
    1.upto(@orders) do |number|
      Shop::Order.place!(@connection, number: number, in_stock: (number % OUT_OF_STOCK_EVERY).positive?)
      progress.at(number)
    rescue Shop::OutOfStock
      @rolled_back += 1
    end
    progress.done("#{Shop::Order.count} committed with their messages, #{@rolled_back} rolled back with theirs")
  end

  # The relay is frozen while we look, so that what it holds is known for certain when it dies.
  def kill_a_relay_in_the_middle
    progress = Progress.new("first relay", total)
    relay = @relay = RelayProcess.new(@places)
    await(progress, "the first relay published nothing") { OutboxView.published.count >= total / 4 }
    looks = 0
    await(progress, "the first relay stands still") do
      raise Unfinished, "the first relay was too fast to be caught; try more --orders" if OutboxView.unpublished.none?

      relay.kill_if { in_the_middle_of_a_batch?(looks += 1) }
    end
    progress.done("kill -9 with #{OutboxView.published.count} of #{total} rows published, " \
                  "#{OutboxView.leased.count} held leased")
  end

  # Best is between the broker's confirm and the mark: that is the window in which a message goes out twice.
  def in_the_middle_of_a_batch?(looks)
    return false unless OutboxView.leased.exists?

    looks > 50 || @connection.message_count(Shop::QUEUE) > OutboxView.published.count
  end

  def let_another_relay_finish
    progress = Progress.new("second relay (waits for the dead one's lease, #{Shop::LEASE} s)", total)
    @relay = RelayProcess.new(@places)
    await(progress, "the second relay did not finish") { OutboxView.unpublished.none? }
    raise Unfinished, "the second relay ended badly" unless @relay.stop.success?

    @in_queue = @connection.message_count(Shop::QUEUE)
    progress.done("finished; it repeated #{@in_queue - total} messages that the first one had sent but not marked")
  end

  # Every tenth message goes back to the broker after it was handled, as from a consumer that died before its ack.
  def read_the_queue_back
    progress = Progress.new("handling messages", @in_queue)
    handler = Shop.handler
    @arrived = []
    @delivered_again = 0
    while (delivery = @connection.pull(Shop::QUEUE))
      handled = handler.call(message = to_message(delivery))
      raise Unfinished, "order #{message.payload} was not handled: #{handled}" unless handled.accept?

      delivery.redelivered ? @delivered_again += 1 : @arrived << message.payload.fetch("number")
      again = !delivery.redelivered && (@arrived.size % DELIVERED_AGAIN_EVERY).zero?
      again ? delivery.nack(requeue: true) : delivery.ack
      progress.at(@arrived.size)
    end
    progress.done("#{@arrived.size + @delivered_again} deliveries, #{Shop::Shipment.count} effects")
  end

  def to_message(delivery)
    envelope = AceMQ::AMQP::Envelope.from_headers(delivery.headers, delivery.routing_key, message_id: delivery.message_id)
    AceMQ::AMQP::Message.new(payload: @connection.codec.decode(delivery.body), envelope: envelope, body: delivery.body,
                             routing_key: delivery.routing_key, content_type: delivery.content_type,
                             redelivered: delivery.redelivered)
  end

  def close_the_account
    account = Account.new(
      committed: Shop::Order.pluck(:number), rolled_back: @rolled_back, published: OutboxView.published.count,
      arrived: @arrived, repeated: @arrived.size - @arrived.uniq.size, delivered_again: @delivered_again,
      shipped: Shop::Shipment.pluck(:order_number)
    )
    say ""
    account.print
    say ""
    account.complaints.each { |complaint| say "does not reconcile: #{complaint}" }
    say "It reconciles: every committed order reached the queue and was handled once." if account.complaints.empty?
    account.complaints.empty?
  end

  def total
    @total ||= OutboxView.count
  end

  # Waits until the block is true, as long as the relay lives and rows go out.
  def await(progress, failure)
    last_count = nil
    until yield
      count = OutboxView.published.count
      unless count == last_count
        last_count = count
        since = now
      end
      raise Unfinished, failure if now - since > PATIENCE || !@relay.running?

      progress.at(count)
      sleep 0.002
    end
  end

  def refuse_tables_of_somebody_else
    there = Shop::TABLES & ActiveRecord::Base.connection.tables
    return if there.empty?

    raise Unfinished, "the database already has #{there.join(", ")}; name one without them in DATABASE_URL"
  end

  def clean_up
    @relay.kill if @relay&.running?
    if @connection
      @connection.delete_queue(Shop::QUEUE)
      @connection.close
    end
    Shop.drop_tables if @opened
  end

  def say(text)
    puts text
    $stdout.flush
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

options = { orders: 2_000, database: "sqlite" }
begin
  OptionParser.new do |parser|
    parser.banner = "usage: bin/demo [options]"
    parser.on("--orders N", Integer, "how many orders are placed (#{options[:orders]})")
    parser.on("--database NAME", %w[sqlite postgres mariadb], "sqlite (the default), postgres, or mariadb")
  end.parse!(into: options)
  raise OptionParser::InvalidArgument, "--orders must be 100 or more, to have a middle" if options[:orders] < 100
rescue OptionParser::ParseError => e
  abort "bin/demo: #{e.message}"
end

begin
  exit Demo.new(**options).run
rescue Interrupt
  abort "\ninterrupted"
rescue Demo::Unfinished, AceMQ::AMQP::TransportError, AceMQ::TestServers::StartError, ActiveRecord::ActiveRecordError => e
  abort "bin/demo: #{e.message}"
end
