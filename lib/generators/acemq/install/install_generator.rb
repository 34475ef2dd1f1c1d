# frozen_string_literal: true

require "rails/generators"
require "rails/generators/active_record"

module Acemq
  module Generators
    # `bin/rails generate acemq:install`: the migrations of the outbox and of the idempotency keys.
    class InstallGenerator < ::Rails::Generators::Base
      include ::ActiveRecord::Generators::Migration

      source_root File.expand_path("templates", __dir__)
      desc "Creates the migrations of the outbox and of the idempotency keys"

      class_option :database, type: :string, aliases: %i[--db],
                              desc: "The database of config/database.yml that they are for; the primary one unless given"
      class_option :existing, type: :boolean, default: false,
                              desc: "The tables are there already: only add the indexes that claims walk along"

      def create_migrations
        return migration("add_acemq_outbox_indexes") if options[:existing]

        migration("create_acemq_outbox")
        migration("create_acemq_idempotency")
      end

      private

      def migration(name)
        migration_template("#{name}.rb.tt", File.join(db_migrate_path, "#{name}.rb"))
      end

      def migration_version
        ::ActiveRecord::Migration.current_version
      end
    end
  end
end
