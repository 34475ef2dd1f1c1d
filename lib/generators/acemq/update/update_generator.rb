# frozen_string_literal: true

require_relative "../migrations"

module Acemq
  module Generators
    # `bin/rails generate acemq:update`: gives tables that came from elsewhere, or from an earlier version, what a table
    # has that is made today.
    class UpdateGenerator < ::Rails::Generators::Base
      include Migrations

      source_root File.expand_path("templates", __dir__)
      desc "Creates a migration that brings the tables of the outbox and of the idempotency keys up to date"

      def create_migrations
        migration("update_acemq_tables")
      end
    end
  end
end
