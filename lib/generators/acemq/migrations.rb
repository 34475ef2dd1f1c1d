# frozen_string_literal: true

require "rails/generators"
require "rails/generators/active_record"

module Acemq
  module Generators
    # For generators that write migrations, each for the database of config/database.yml that `--database` names.
    module Migrations
      # @api private
      def self.included(generator)
        generator.include ::ActiveRecord::Generators::Migration
        generator.class_option :database, type: :string, aliases: %i[--db],
                                          desc: "The database of config/database.yml; the primary one unless given"
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
