# frozen_string_literal: true

require_relative "../migrations"

module Acemq
  module Generators
    # `bin/rails generate acemq:install`: the tables of the outbox and of the idempotency keys, settings, models, stores
    # and executables. What is there already stays as it is.
    class InstallGenerator < ::Rails::Generators::Base
      include Migrations

      source_root File.expand_path("templates", __dir__)
      desc "Installs the outbox: migrations, settings, models, stores and executables"

      class_option :existing, type: :boolean, default: false,
                              desc: "The tables are there already: only add the indexes that claims walk along"

      # By the names that applications of the family have.
      MODELS = %w[outbox_message handled_message active_record_outbox_store active_record_idempotency_store].freeze
      EXECUTABLES = %w[acemq acemq-consumer].freeze

      def create_migrations
        return migration("add_acemq_outbox_indexes") if options[:existing]

        migration("create_acemq_outbox")
        migration("create_acemq_idempotency")
      end

      def create_settings
        once("acemq.yml.tt", "config/acemq.yml")
        once("initializer.rb.tt", "config/initializers/acemq.rb")
      end

      def create_models
        MODELS.each { |name| once("#{name}.rb.tt", "app/models/#{name}.rb") }
      end

      def create_executables
        EXECUTABLES.each do |name|
          @executable = name
          once("executable.rb.tt", "bin/#{name}")
          chmod("bin/#{name}", 0o755, verbose: false)
        end
      end

      def say_what_is_next
        model = " --model OutboxMessage" if options[:database]
        say "\nNext: bin/rails db:migrate, then run the relay in a process of its own (bin/acemq relay#{model}). A small " \
            "application may have `plugin :acemq_relay` in config/puma.rb instead."
      end

      private

      # A file that somebody has made is theirs.
      def once(template, path)
        return say_status(:exist, path, :blue) if File.exist?(File.join(destination_root, path))

        template(template, path)
      end

      # The abstract class that Rails' own generators make for a database.
      def parent_class
        options[:database] ? "#{options[:database].camelize}Record" : "ApplicationRecord"
      end

      def application_name
        File.basename(File.expand_path(destination_root)).tr("^A-Za-z0-9_-", "")
      end
    end
  end
end
