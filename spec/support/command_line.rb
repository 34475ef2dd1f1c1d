# frozen_string_literal: true

require "json"
require "stringio"

module AceMQ
  module SpecSupport
    # The commands of `acemq`, run in this process on the example's database and broker.
    module CommandLine
      Run = Struct.new(:out, :err, :code) do
        # @return [Object] the last line of its output
        def json
          JSON.parse(out.lines.last, symbolize_names: true)
        end
      end

      APPLICATION = File.expand_path("files/nothing.rb", __dir__)

      # @return [Run]
      def acemq(*arguments)
        # What closes it for the process would close it for the rest of the example.
        allow(AceMQ::Rails).to receive(:disconnect!)
        former = [$stdout, $stderr, $PROGRAM_NAME]
        $stdout = StringIO.new
        $stderr = StringIO.new
        code = AceMQ::CLI.run([*arguments, "--require", APPLICATION])
        Run.new($stdout.string, $stderr.string, code)
      ensure
        $stdout, $stderr, $PROGRAM_NAME = former
      end

      # Nothing listens there.
      def without_broker
        AceMQ::Rails.connection = AceMQ::AMQP::Connection.lazy("amqp://127.0.0.1:1")
      end

      # Nothing listens there either.
      def without_database
        config = Database.config(database)
        ::ActiveRecord::Base.establish_connection(config.merge(port: 1, host: "127.0.0.1"))
        yield
      ensure
        Database.connect(database)
      end
    end
  end
end

RSpec.configure do |config|
  config.include AceMQ::SpecSupport::CommandLine
  config.after { AceMQ::Rails.connection = nil if defined?(AceMQ::Rails) }
end
