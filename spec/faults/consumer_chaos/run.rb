# frozen_string_literal: true

require "fileutils"
require "set"
require "tmpdir"
require_relative "../chaos/child"

module AceMQ
  # Consumers that are killed, a broker that is, connections that are cut, a dead-letter queue that refuses: and every
  # message still somewhere, whenever one looks.
  class ConsumerChaos
    WORKER = File.expand_path("consumer_chaos/worker.rb", File.dirname(__dir__))
    # Messages that the dead-letter queue takes before it nacks.
    ROOM = 15
    # What a message's last digit brings it to in the end, see the worker.
    DEAD = [0, 1].freeze
    PARKED = 3

    # @return [Array<String>] what was not as it must be
    attr_reader :complaints
    # @return [Hash{Symbol => Integer}] what was done to them
    attr_reader :done

    # @param server [TestServers::RabbitMQ] ours
    # @param messages [Integer]
    # @param seconds [Numeric]
    # @param pauses [Integer]
    # @param seed [Integer]
    def initialize(server, messages:, seconds:, pauses:, seed:, workers: 3)
      @server = server
      @proxy = SpecSupport::Proxy.new(server.port)
      @messages = messages
      @seconds = seconds
      @pauses = pauses
      @random = Random.new(seed)
      @folder = Dir.mktmpdir("acemq-chaos")
      @wanted = workers
      @complaints = []
      @done = Hash.new(0)
      @sent = Set.new
      @buried = Set.new
    end

    # @return [Boolean] whether all was well
    def call
      prepare
      chapters.each_with_index do |numbers, index|
        disturb(numbers, restart: index.even?)
        look
      end
      finish
      complaints.empty?
    ensure
      clear
    end

    private

    def chapters
      (0...@messages).each_slice((@messages / @pauses.to_f).ceil)
    end

    def prepare
      @queue = "chaos.#{Process.pid}"
      @connection = AMQP::Connection.open(@server.url)
      @connection.declare_queue(@queue, queue_type: :classic)
      @connection.declare_queue("#{@queue}.dlq", queue_type: :classic,
                                                 arguments: { "x-max-length" => ROOM, "x-overflow" => "reject-publish" })
      @workers = Array.new(@wanted) { worker }
    end

    def worker
      Chaos::Child.new(WORKER, { url: @proxy.url(@server.url), queue: @queue, effects: effects_file },
                       output: File::NULL, errors: File.join(@folder, "errors.log"))
    end

    def effects_file
      File.join(@folder, "effects")
    end

    # Sends some messages, and does harm meanwhile.
    def disturb(numbers, restart:)
      harms = (@seconds / @pauses.to_f / PACE).ceil
      numbers.each_slice((numbers.size / harms.to_f).ceil).with_index do |slice, index|
        send(slice)
        restart && index == harms / 2 ? restart_broker : harm
        sleep(@random.rand(PACE))
      end
    end

    PACE = 0.8 # seconds, between two harms at most

    def harm
      case @random.rand(10)
      when 0..5 then kill_one
      when 6, 7 then bury(ROOM / 2)
      else cut
      end
    end

    def kill_one
      index = @random.rand(@workers.size)
      @workers[index].kill
      @workers[index] = worker
      @done[:kills] += 1
    end

    def cut
      @proxy.reset
      @done[:cuts] += 1
    end

    def restart_broker
      @server.kill
      @server.start
      @done[:restarts] += 1
    end

    # Until all of them are confirmed.
    def send(numbers)
      persist { @connection.publish_all(numbers, to: @queue, mandatory: true) }
      @sent.merge(numbers)
    end

    # As an operator does who takes dead letters away.
    def bury(count)
      persist do
        count.times do
          delivery = @connection.pull("#{@queue}.dlq") or break
          @buried << Integer(delivery.body)
          delivery.ack
        end
      end
    end

    def persist
      deadline = clock + 60
      begin
        yield
      rescue AMQP::TransportError
        raise if clock > deadline

        sleep 0.1
        retry
      end
    end

    # With every worker dead: each message that was sent is in a queue, or its effect is there.
    def look
      @workers.each(&:kill)
      deadline = clock + 20
      missing = missing_now
      until missing.empty? || clock > deadline
        sleep 0.2
        missing = missing_now
      end
      complaints << "nowhere: #{missing.first(20)} (#{missing.size})" if missing.any?
      @workers = Array.new(@wanted) { worker }
      @done[:looks] += 1
    end

    def missing_now
      (@sent - effects - @buried - in_queues).to_a
    end

    # Where messages move to comes after where they move from. They are held until all are counted.
    def in_queues
      persist do
        @connection.inbox { |inbox| queues.flat_map { |queue| numbers_in(inbox, queue) }.to_set }
      end
    end

    def queues
      [*AMQP::RetryLadder.new(@queue, [0.5]).queues, @queue, "#{@queue}.dlq", "#{@queue}.parked"]
        .select { |queue| persist { @connection.queue_exists?(queue) } }
    end

    def numbers_in(inbox, queue)
      found = []
      while (delivery = inbox.pull(queue))
        found << Integer(delivery.body)
      end
      found
    end

    def effects
      File.exist?(effects_file) ? File.readlines(effects_file).to_set { |line| Integer(line) } : Set.new
    end

    # Left in peace, everything gets to where it belongs, and nothing to where it does not.
    def finish
      deadline = clock + 60
      until arrived? || clock > deadline
        bury(ROOM)
        sleep 0.1
      end
      bury(ROOM)
      expected = @sent.group_by { |number| end_of(number) }.transform_values(&:to_set)
      compare("effects", effects, expected[:effect])
      compare("dead letters", @buried, expected[:dead])
      compare("parked", @connection.inbox { |inbox| numbers_in(inbox, "#{@queue}.parked") }.to_set, expected[:parked])
    end

    def end_of(number)
      return :parked if number % 10 == PARKED

      DEAD.include?(number % 10) ? :dead : :effect
    end

    def arrived?
      (@sent - effects - @buried).all? { |number| end_of(number) == :parked } &&
        queues.reject { |queue| queue.end_with?(".parked") }.sum { |queue| persist { @connection.message_count(queue) } }.zero?
    end

    def compare(what, found, expected)
      complaints << "#{what} that should not be: #{(found - expected).first(10)}" unless found <= expected
      complaints << "#{what} missing: #{(expected - found).first(10)}" unless expected <= found
    end

    def clear
      @workers&.each(&:kill)
      @connection&.close(timeout: 2)
      @proxy.close
      complaints << File.read(File.join(@folder, "errors.log")).lines.last(20).join if complaints.any?
      FileUtils.rm_rf(@folder)
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
