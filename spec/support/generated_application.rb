# frozen_string_literal: true

require "bundler"
require "net/http"
require_relative "rails_application"

module AceMQ
  module SpecSupport
    # A shop made by `rails new` and this gem's generators, with a bundle of its own: orders come over HTTP, are announced
    # through the outbox, and are fulfilled by a consumer. Its processes are the ones that a deployment has.
    class GeneratedApplication < RailsApplication
      GEM = File.expand_path("../..", __dir__)
      NEW = %w[new . --name=shop --api --minimal --skip-bundle --skip-git --skip-test --database=postgresql --quiet].freeze

      # The worker that answers, and what runs in it.
      Worker = Struct.new(:pid, :threads, :connected)

      attr_reader :queue

      # @param database_url [String] an empty PostgreSQL database
      # @param broker_url [String]
      # @param queue [String] a name that nobody else has; also that of the exchange
      def initialize(database_url:, broker_url:, queue:)
        @settings = { "DATABASE_URL" => database_url, "AMQP_URL" => broker_url }
        @queue = queue
        @daemons = []
        super()
        rails("generate", "acemq:install", "--quiet")
        rails("generate", "acemq:consumer", "fulfilment", "--queue", queue, "--quiet")
        shop
        rails("db:migrate")
      end

      def rails(*arguments)
        run!("bin/rails", *arguments)
      end

      # @param workers [Integer] 0 for a single process
      # @return [Running] with all of its workers there
      def puma(workers: 2, env: {})
        @settings["PORT"] = free_port.to_s
        environment = { "WORKERS" => workers.to_s, **env }
        start("-S", "bundle", "exec", "puma", "-C", "config/puma.rb", env: environment).tap do |process|
          booted = workers.zero? ? /Use Ctrl-C to stop/ : /Worker \d \(PID: \d+\) booted/
          wait_for(process) { process.output.scan(booted).size >= [workers, 1].max }
        end
      end

      # @return [Integer] the process that `rails server -d` leaves behind
      def daemon(env: {})
        @settings["PORT"] = free_port.to_s
        file = File.join(root, "tmp/pids/server.pid")
        run!("bin/rails", "server", "-d", "-P", file, env: { "WORKERS" => "0", **env })
        wait_for { File.size?(file) }
        @daemons << Integer(File.read(file))
        wait_for { listening? }
        @daemons.last
      end

      def kill_all
        super
        @daemons.each { |pid| Process.kill("KILL", pid) if alive?(pid) }
        @daemons.clear
      end

      def alive?(pid)
        Process.kill(0, pid)
        true
      rescue Errno::ESRCH
        false
      end

      def relay
        start("bin/acemq", "relay", "--interval", "0.1").tap do |process|
          wait_for(process) { process.output.include?("publishing acemq_outbox") }
        end
      end

      def consumer
        start("bin/acemq-consumer").tap do |process|
          wait_for(process) { process.output.include?("consumes #{queue}") }
        end
      end

      # @return [Integer] its number
      # @raise [RuntimeError] when it was not placed
      def place_order
        response = Net::HTTP.post(URI("#{address}/orders"), "")
        raise "#{response.code} #{response.body}" unless response.code == "201"

        JSON.parse(response.body).fetch("id")
      end

      # @return [String] of all processes; newer Rails writes it to standard output instead
      def log
        File.exist?(File.join(root, "log/production.log")) ? read("log/production.log") : ""
      end

      # @return [Array<Worker>] both
      def workers
        found = {}
        wait_for do
          facts = JSON.parse(Net::HTTP.get(URI("#{address}/worker")))
          found[facts["pid"]] = Worker.new(*facts.values_at("pid", "threads", "connected"))
          found.size == 2
        end
        found.values
      end

      private

      def address
        "http://127.0.0.1:#{@settings["PORT"]}"
      end

      def listening?
        TCPSocket.open("127.0.0.1", @settings["PORT"]).close
        true
      rescue Errno::ECONNREFUSED
        false
      end

      def free_port
        TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      end

      # Nothing of the bundle that the specs run in.
      def environment(more)
        unset = Bundler.unbundled_env.then { |outside| ENV.to_h.except(*outside.keys).transform_values { nil } }
        { **unset, "RAILS_ENV" => "production", "RAILS_LOG_TO_STDOUT" => nil, "BUNDLE_SILENCE_ROOT_WARNING" => "1",
                   **@settings, **more }
      end

      def wait_for(process = nil, seconds: 60)
        Timeout.timeout(seconds) { sleep 0.05 until yield || process&.ended? }
        raise "ended: #{process.output}" if process&.ended?
      rescue Timeout::Error
        raise "not in #{seconds} s; the processes said:\n#{@running.map(&:output).join("\n")}\n#{log}"
      end

      def base(_)
        run!("-e", "require 'rails/cli'", "--", *NEW)
        write("Gemfile", <<~RUBY)
          source Gem.sources.first.uri.to_s
          %w[railties activerecord actionpack pg puma].each { |name| gem name }
          gem "acemq_native", path: #{GEM.inspect}
        RUBY
        run!("-S", "bundle", "install", "--local", "--quiet")
      end

      def shop
        puma_settings
        acemq_settings
        http
        orders
        fulfilment
      end

      def puma_settings
        write("config/puma.rb", <<~RUBY)
          workers Integer(ENV.fetch("WORKERS"))
          preload_app! if ENV["WORKERS"] != "0"
          raise_exception_on_sigterm false
          threads 2, 2
          bind "tcp://127.0.0.1:\#{ENV.fetch("PORT")}"
          environment "production"
          plugin :acemq_relay if ENV["RELAY"] == "plugin"

          # Puma's thread closes the pipe by which it was told to stop. On Ruby 3.3 that waits for ever now and then, when
          # whoever told it is not quite back from writing; all other threads are asleep then, and there need be no relay.
          require "puma/server"
          Puma::Server.prepend(Module.new do
            def graceful_shutdown
              super.tap { sleep 0.2 }
            end
          end)
        RUBY
      end

      def acemq_settings
        write("config/acemq.yml", <<~YAML)
          #{read("config/acemq.yml").chomp}
            topology:
              exchanges:
                - { name: #{queue} }
              queues:
                - { name: #{queue}, type: classic }
              bindings:
                - { queue: #{queue}, exchange: #{queue}, routing_key: "order.#" }
        YAML
        write("config/initializers/relay.rb", <<~RUBY)
          Rails.application.config.force_ssl = false
          if ENV["RELAY"] == "initializer"
            Rails.application.config.after_initialize do
              AceMQ::AMQP::Patterns::OutboxRelay.new(AceMQ::Rails.connection, ActiveRecordOutboxStore.new, interval: 0.1).start
            end
          end
        RUBY
      end

      def http
        write("config/routes.rb", <<~RUBY)
          Rails.application.routes.draw do
            resources :orders, only: :create
            get "worker", to: "orders#worker"
          end
        RUBY
        write("app/controllers/orders_controller.rb", <<~RUBY)
          class OrdersController < ApplicationController
            def create
              render json: { id: Order.place!.id }, status: :created
            end

            def worker
              render json: { pid: Process.pid, threads: Thread.list.filter_map(&:name), connected: AceMQ::Rails.connected? }
            end
          end
        RUBY
      end

      def orders
        write("app/models/order.rb", <<~RUBY)
          class Order < ApplicationRecord
            OUTBOX = ActiveRecordOutboxStore.new

            def self.place!
              transaction do
                create!.tap do |order|
                  OUTBOX.add(AceMQ::AMQP::Patterns.record(AceMQ::Rails.connection, { id: order.id },
                                                          to: "order.placed", exchange: "#{queue}"))
                end
              end
            end
          end
        RUBY
        write("db/migrate/20260101000000_create_orders.rb", <<~RUBY)
          class CreateOrders < ActiveRecord::Migration[6.1]
            def change
              create_table(:orders, &:timestamps)
              create_table(:fulfilments) { |t| t.integer :order_id }
            end
          end
        RUBY
      end

      # No index keeps a second one out: that there is none is what has to be shown.
      def fulfilment
        write("app/models/fulfilment.rb", "class Fulfilment < ApplicationRecord\nend\n")
        consumer = "app/consumers/fulfilment_consumer.rb"
        written = read(consumer).sub(/# The work, .*$/, "Fulfilment.create!(order_id: m.payload.fetch(\"id\"))")
        write(consumer, written.sub("class FulfilmentConsumer < AceMQ::Rails::Consumer\n", "\\0  concurrency 3\n"))
      end
    end
  end
end
