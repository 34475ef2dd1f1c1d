# frozen_string_literal: true

require "acemq/rails/consumer_command"
require "fileutils"
require "stringio"

# The executable acemq-consumer, in a process of its own.
RSpec.describe "acemq-consumer" do
  let(:app) { rails_application }

  def command(*options)
    app.run(app.executable("acemq-consumer"), *options)
  end

  # What ends before the application is loaded needs no process.
  # @return [Array(String, Integer)] what it says, and the exit code
  def said(*options)
    output = StringIO.new
    code = AceMQ::Rails::ConsumerCommand.new(options, output: output, errors: output).call
    [output.string, code]
  end

  describe "options" do
    it "explains itself" do
      output, code = said("--help")

      expect(code).to eq 0
      expect(output).to include("Usage: acemq-consumer", "--queues", "--environment", "--require", "--reload", "--quiet", "75")
      expect(said("-v")).to eq ["acemq_native #{AceMQ::Native::VERSION}\n", 0]
    end

    it "refuses what it does not know" do
      output, code = said("--quees", "a")

      expect(code).to eq 64
      expect(output).to match(/\Aacemq-consumer: invalid option: --quees.*; see acemq-consumer --help\n\z/)
      expect(said("payments").last).to eq 64
    end

    it "says where it looked for the application" do
      output, status = command("--require", "config/aplication")

      expect(status.exitstatus).to eq 1
      expect(output).to match(%r{there is no application at /.*/config/aplication\.rb; .*--require PATH})
    end

    it "says which setting does not exist" do
      app.write("config/acemq.yml", "production: {consumer: {prefetsh: 5}}")
      output, status = command

      expect(status.exitstatus).to eq 1
      expect(output).to match(/\Aacemq-consumer: config\.acemq\.consumer has no prefetsh; its settings are prefetch, .*\n\z/)
    end

    it "says so when there is nothing to consume" do
      output, status = command

      expect(status.exitstatus).to eq 1
      expect(output).to match(%r{no consumer class to run.*app/consumers})
    end

    it "lists the queues that have a consumer when it is asked for another" do
      app.write("app/consumers/payments_consumer.rb", "class PaymentsConsumer < AceMQ::Rails::Consumer\n queue 'shop.payments'\nend")
      output, status = command("--queues", "shop.payments,shop.mial")

      expect(status.exitstatus).to eq 1
      expect(output).to include "no consumer handles shop.mial; there are consumers of shop.payments"
    end

    it "says which broker is away, without its password, and nothing else when it is to be quiet" do
      app.write("app/consumers/payments_consumer.rb", "class PaymentsConsumer < AceMQ::Rails::Consumer\n queue 'shop.payments'\nend")
      app.write("config/acemq.yml", "production: {url: 'amqp://shop:hunter2@127.0.0.1:1'}")
      output, status = command("--quiet")

      expect(status.exitstatus).to eq 1
      expect(output).to match(/\Aacemq-consumer: PaymentsConsumer cannot consume shop\.payments: .*127\.0\.0\.1:1.*\n\z/)
      expect(output).not_to include "hunter2"
    end
  end

  describe "at work", :broker do
    let(:amqp) { open_connection }
    let(:queue) { new_queue(amqp) }

    # Says that it has begun, and goes on when it may.
    def patient_consumer(shutdown_timeout: 20)
      app.write("config/acemq.yml", "production: {url: '#{broker.url}', shutdown_timeout: #{shutdown_timeout}, " \
                                    "client_name: shop}")
      app.write("app/consumers/patient_consumer.rb", <<~RUBY)
        class PatientConsumer < AceMQ::Rails::Consumer
          queue "#{queue}"
          concurrency 2

          def call(message)
            File.write("#{app.root}/begun.\#{message.payload["n"]}", "")
            sleep 0.02 until File.exist?("#{app.root}/go")
            File.write("#{app.root}/done.\#{message.payload["n"]}", "")
            accept
          end
        end
      RUBY
    end

    def files(kind)
      Dir[File.join(app.root, "#{kind}.*")].map { |file| File.extname(file).delete(".").to_i }.sort
    end

    def consuming(*options, messages:)
      (1..messages).each { |n| amqp.publish({ "n" => n }, to: queue, id: "m-#{n}") }
      app.start(app.executable("acemq-consumer"), *options).tap do |process|
        eventually(30) { expect(files("begun")).to(eq([1, 2].first(messages)), process.output) }
      end
    end

    def go
      FileUtils.touch(File.join(app.root, "go"))
    end

    it "lets handlers finish at SIGTERM: they are acked, and it exits with 0, whatever the environment does to code" do
      patient_consumer
      app.write("config/environments/production.rb", "Shop.configure { config.cache_classes = false; config.eager_load = false }")
      app.write("config/initializers/say.rb", "at_exit { puts [Rails.application.config.cache_classes, $PROGRAM_NAME].inspect }")
      process = consuming(messages: 5)
      process.signal("TERM")
      eventually { expect(process.output).to match(/^\d{4}-\d\d-\d\dT[\d:.+-]+ acemq: SIGTERM: finishing what is under way, 20 s/) }
      go

      expect(process.wait.exitstatus).to eq 0
      expect(files("done")).to eq(files("begun")).and start_with(1, 2)
      expect(process.output).to include("acemq: PatientConsumer consumes #{queue}, 2 at a time", "acemq: everything is finished")
      expect(process.output).to match(/\[true, ".*acemq-consumer"\]/)
      expect(drain(amqp, queue).map(&:message_id)).to match_array(((1..5).to_a - files("done")).map { |n| "m-#{n}" })
    end

    it "exits with 75 when they do not, and their messages come back" do
      patient_consumer(shutdown_timeout: 0.5)
      process = consuming("--queues", queue, messages: 1)

      expect(elapsed { process.signal("INT").wait }).to be < 5
      expect(process.wait.exitstatus).to eq 75
      expect(process.output).to match(/not everything was finished: .*1 of #{queue}/)
      expect(files("done")).to be_empty
      eventually { expect(amqp.message_count(queue)).to eq 1 }
      expect(drain(amqp, queue)).to match [have_attributes(message_id: "m-1", redelivered: true)]
    end

    it "tells of a queue that is no longer consumed, and of its return" do
      patient_consumer
      go
      process = consuming(messages: 1)
      amqp.delete_queue(queue)
      eventually(20) { expect(process.output).to match(/acemq: not consuming from "#{queue}": /) }
      amqp.declare_queue(queue, queue_type: :classic)
      amqp.publish({ "n" => 2 }, to: queue)

      eventually(20) { expect(files("done")).to eq [1, 2] }
      eventually(20) { expect(process.output).to match(/acemq: consuming from "#{queue}" again/) }
      expect(process.signal("TERM").wait).to be_success
    end

    it "declares the topology before it consumes" do
      patient_consumer
      app.write("config/acemq.yml", <<~YAML)
        production:
          url: #{broker.url}
          topology:
            queues: [{ name: "#{queue}.made", type: classic }]
      YAML
      app.write("app/consumers/patient_consumer.rb", app.read("app/consumers/patient_consumer.rb").sub(queue, "#{queue}.made"))
      process = app.start(app.executable("acemq-consumer"))
      eventually(30) { expect(process.output).to include "consumes #{queue}.made" }

      expect(amqp.queue_exists?("#{queue}.made")).to be true
      expect(process.signal("TERM").wait).to be_success
    ensure
      ["", ".dlq", ".parked"].each { |suffix| amqp.delete_queue("#{queue}.made#{suffix}") }
    end
  end
end
