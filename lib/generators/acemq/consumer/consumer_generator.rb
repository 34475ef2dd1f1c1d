# frozen_string_literal: true

require "rails/generators"

module Acemq
  module Generators
    # `bin/rails generate acemq:consumer payments`: a class that handles the messages of one queue, each of them once.
    class ConsumerGenerator < ::Rails::Generators::NamedBase
      source_root File.expand_path("templates", __dir__)
      desc "Creates a consumer class, and a test of it"

      class_option :queue, type: :string, desc: "The queue it handles; APPLICATION.NAME unless given"

      # By the folder that an application has its tests in.
      TESTS = { "spec" => "consumer_spec.rb.tt", "test" => "consumer_test.rb.tt" }.freeze

      def create_consumer
        template("consumer.rb.tt", File.join("app/consumers", class_path, "#{file_name}_consumer.rb"))
      end

      def create_test
        folder, template = TESTS.find { |folder, _| File.directory?(File.join(destination_root, folder)) }
        return unless folder

        template(template, File.join(folder, "consumers", class_path, "#{file_name}_consumer_#{folder}.rb"))
      end

      private

      # "PaymentsConsumer" and "payments" are the same.
      def file_name
        super.delete_suffix("_consumer")
      end

      def consumer_class
        (class_path + [file_name]).map(&:camelize).join("::").concat("Consumer")
      end

      def queue
        options[:queue] || [application_name, *class_path, file_name].join(".")
      end

      def application_name
        File.basename(File.expand_path(destination_root)).tr("^A-Za-z0-9_-", "")
      end

      # Whose transaction takes the keys along: that of another database where the keys are in one.
      def transaction_class
        model = File.join(destination_root, "app/models/handled_message.rb")
        parent = File.read(model)[/class HandledMessage < (\S+)/, 1] if File.exist?(model)
        [nil, "ApplicationRecord", "ActiveRecord::Base"].include?(parent) ? "ActiveRecord::Base" : "HandledMessage"
      end

      def store
        own = File.join(destination_root, "app/models/active_record_idempotency_store.rb")
        "#{"AceMQ::AMQP::Patterns::" unless File.exist?(own)}ActiveRecordIdempotencyStore"
      end
    end
  end
end
