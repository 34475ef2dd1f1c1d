# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "rbconfig"
require "tmpdir"
require "timeout"

module AceMQ
  module SpecSupport
    # A Rails application in a folder of its own, as small as they come, run in processes of their own.
    class RailsApplication
      LIB = File.expand_path("../../lib", __dir__)
      EXECUTABLES = File.expand_path("../../exe", __dir__)

      # What is the same for all, made once a run: the generator's files and the tables, on SQLite.
      module Installed
        PARTS = %w[app/models db].freeze

        class << self
          def copy_to(root)
            PARTS.each { |part| FileUtils.cp_r(File.join(original, part), File.join(root, File.dirname(part))) }
          end

          private

          def original
            @original ||= RailsApplication.new(database: SQLITE).then do |app|
              owner = Process.pid
              at_exit { app.remove if Process.pid == owner }
              app.run!("bin/rails", "generate", "acemq:install", "--quiet")
              app.run!("bin/rails", "db:migrate")
              app.root
            end
          end
        end
      end

      SQLITE = { adapter: "sqlite3", database: "db/shop.sqlite3", timeout: 5_000 }.freeze

      # A process of the application's that runs beside the example.
      class Running
        attr_reader :pid, :log

        def initialize(pid, log)
          @pid = pid
          @log = log
        end

        # @return [String] everything that it has printed
        def output
          File.read(log, encoding: Encoding::UTF_8)
        end

        def signal(name)
          Process.kill(name, pid)
          self
        end

        # @return [Process::Status]
        def wait(seconds = 60)
          @wait ||= Timeout.timeout(seconds) { Process.wait2(pid).last }
        rescue Timeout::Error
          raise "still there after #{seconds} s; it said:\n#{output}"
        end

        def ended?
          !(@wait ||= Process.wait2(pid, Process::WNOHANG)&.last).nil?
        end

        def kill
          return if ended?

          signal("KILL").wait
        end
      end

      attr_reader :root

      # @param database [Hash, nil] for config/database.yml
      # @param installed [Boolean] whether it has the generator's files and the tables, on SQLite
      # @param application [String] lines for its class
      def initialize(database: nil, installed: false, application: "")
        @root = Dir.mktmpdir("acemq-app")
        @running = []
        @started = 0
        base(application)
        database_files(database || SQLITE) if database || installed
        Installed.copy_to(root) if installed
      end

      def write(path, text, mode: nil)
        file = File.join(root, path)
        FileUtils.mkdir_p(File.dirname(file))
        File.write(file, text)
        File.chmod(mode, file) if mode
      end

      def read(path)
        File.read(File.join(root, path))
      end

      # @param command [Array<String>] for Ruby: a file and its arguments
      # @return [Array(String, Process::Status)]
      def run(*command, env: {})
        Open3.capture2e(environment(env), RbConfig.ruby, "-W0", *command, chdir: root)
      end

      # @return [String] what it printed
      def run!(*command, **options)
        output, status = run(*command, **options)
        raise "#{command.join(" ")} ended with #{status.exitstatus}:\n#{output}" unless status.success?

        output
      end

      # @return [Running]
      def start(*command, env: {})
        log = File.join(root, "process.#{@started += 1}.log")
        pid = Process.spawn(environment(env), RbConfig.ruby, "-W0", *command, chdir: root, %i[out err] => log)
        Running.new(pid, log).tap { |process| @running << process }
      end

      # @param name [String] of exe/
      def executable(name)
        File.join(EXECUTABLES, name)
      end

      def kill_all
        @running.each(&:kill)
        @running.clear
      end

      def remove
        kill_all
        FileUtils.rm_rf(root)
      end

      private

      # The gems of this process, by their folders: no bundle is needed to find them.
      def environment(more)
        { "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "RUBYLIB" => [LIB, *$LOAD_PATH].uniq.join(File::PATH_SEPARATOR),
          "RAILS_ENV" => "production", "RAILS_LOG_TO_STDOUT" => nil, "DATABASE_URL" => nil }.merge(more)
      end

      def base(application)
        write("config/application.rb", <<~RUBY)
          require "rails"
          require "action_controller/railtie" # Rails 7 loads nothing eagerly without it
          require "active_record/railtie" if File.exist?(File.join(__dir__, "database.yml"))
          require "acemq_native"
          class Shop < Rails::Application
            config.root = File.expand_path("..", __dir__)
            config.eager_load = true
            config.cache_classes = true
            config.secret_key_base = "x" * 30
            #{application}
          end
        RUBY
        write("config/environment.rb", "require_relative 'application'\nRails.application.initialize!\n")
        write("config.ru", "require_relative 'config/environment'\nrun Rails.application\n")
        write("Rakefile", "require_relative 'config/application'\nRails.application.load_tasks\n")
        write("bin/rails", "APP_PATH = File.expand_path('../config/application', __dir__)\nrequire 'rails/commands'\n")
        FileUtils.mkdir_p(%w[app/consumers db log tmp].map { |folder| File.join(root, folder) })
      end

      def database_files(config)
        write("config/database.yml", JSON.generate("production" => config))
        write("app/models/application_record.rb", <<~RUBY)
          class ApplicationRecord < ActiveRecord::Base
            self.abstract_class = true
          end
        RUBY
      end
    end

    # For examples.
    module RailsApplications
      # Removed after the example, its processes killed.
      def rails_application(**options)
        RailsApplication.new(**options).tap { |application| cleanups << -> { application.remove } }
      end
    end
  end
end

RSpec.configure { |config| config.include AceMQ::SpecSupport::RailsApplications }
