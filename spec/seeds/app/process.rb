# A process of the application: `ruby process.rb consumer` or `ruby process.rb TASK`, told by ACEMQ_SPEC_* where its
# servers are. Only what the application's files ask of Rails is there.
require "active_record"
require_relative "../application"

module Rails
  ErrorReporter = Class.new do
    def report(error, context: {})
      $stdout.puts "reported: #{error.message} #{context}"
      $stdout.flush
    end
  end

  class << self
    def application = self
    def config = self
    def error = @error ||= ErrorReporter.new
    def after_initialize(&block) = callbacks << block
    def callbacks = @callbacks ||= []
  end
end

def boot
  ActiveRecord::Base.establish_connection(JSON.parse(ENV.fetch("ACEMQ_SPEC_DATABASE")))
  AceMQ::Rails.config.url = ENV.fetch("ACEMQ_SPEC_URL")
  at_exit { AceMQ::Rails.disconnect! }
end

if ARGV == ["consumer"]
  $PROGRAM_NAME = "bin/acemq-consumer"
  boot
  load File.join(__dir__, "initializers/acemq_outbox.rb")
  Rails.callbacks.each(&:call)
  Signal.trap("TERM") { exit }
  sleep
else
  require "rake"
  Rake::Task.define_task(:environment) { boot }
  Dir[File.join(__dir__, "tasks/*.rake")].each { |file| Rake.load_rakefile(file) }
  Rake::Task[ARGV.fetch(0)].invoke
end
