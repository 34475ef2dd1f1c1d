# frozen_string_literal: true

require "json"
require "rbconfig"
require "tmpdir"

module AceMQ
  module SpecSupport
    # `acemq relay` in processes of its own, on the example's database.
    module RelayCommands
      # One of them.
      class RelayCommand
        EXECUTABLE = File.expand_path("../../exe/acemq", __dir__)
        LIB = File.expand_path("../../lib", __dir__)
        APPLICATION = File.expand_path("files/relay_application.rb", __dir__)

        # @return [Process::Status] once it has ended
        attr_reader :status

        def initialize(options, environment)
          @file = File.join(Dir.mktmpdir, "relay.log")
          @pid = spawn(environment, RbConfig.ruby, "-W0", "-I", LIB, EXECUTABLE, "relay", "--require", APPLICATION, *options,
                       in: File::NULL, out: [@file, "a"], err: [@file, "a"])
        end

        attr_reader :pid

        def output
          File.exist?(@file) ? File.read(@file) : ""
        end

        def signal(name)
          Process.kill(name, pid)
        end

        # @return [Integer, nil] exit code; nil while it runs
        def ended(seconds = 15)
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
          until @status
            _, @status = Process.wait2(pid, Process::WNOHANG)
            return if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

            sleep 0.02
          end
          @status.exitstatus
        end

        def dispose
          signal("KILL") unless ended(0)
          ended
        rescue Errno::ESRCH, Errno::ECHILD
          nil
        ensure
          FileUtils.rm_rf(File.dirname(@file))
        end
      end

      # Killed after the example.
      #
      # @return [RelayCommand]
      def relay_command(*options, url: broker.url, database: Database.config(self.database), environment: {})
        settings = { "ACEMQ_SPEC_URL" => url, "ACEMQ_SPEC_DATABASE" => JSON.generate(database) }.merge(environment)
        RelayCommand.new(options, settings).tap { |command| cleanups << -> { command.dispose } }
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::RelayCommands }
